package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

var _ provider.Observer = (*Reporter)(nil)

// Observe notes the denials of an admission. Audits ask about what exists already.
func (r *Reporter) Observe(_ context.Context, o provider.Observation) {
	if o.Source != provider.SourceAdmission || o.Operation != provider.OperationVerify {
		return
	}
	for i := range o.Keys {
		k := &o.Keys[i]
		if k.Reference.Name() == v1beta1.IsolationImage {
			continue // a team that tries its own isolation would write into another's report
		}
		if k.Repeated || k.Namespace == verify.Cluster || k.Outcome != provider.KeyDenied && k.Outcome != provider.KeyInvalid {
			continue
		}
		r.notes.add(k.Namespace, r.accounts.Account(k.Namespace), noteOf(k, o.TraceID), r.now())
	}
}

// noteOf returns what a note says of the image of a key.
func noteOf(k *provider.KeyObservation, traceID string) note {
	n := note{Image: k.Reference.String(), Reason: policy.Shown(k.Reason, maxReasonBytes), TraceID: traceID}
	if k.Outcome == provider.KeyInvalid {
		n.Image = strings.TrimPrefix(k.Key, "["+string(k.Namespace)+"]")
	}
	n.Image = policy.Shown(n.Image, maxImageBytes)
	if k.Result != nil {
		v := k.Result.Verdict
		n.Digest, n.Policy = string(k.Result.Digest), sourceOf(v.Policy)
		n.Reason, n.Remediation = policy.Shown(v.Reason, maxReasonBytes), policy.Shown(v.Remediation, maxRemediationBytes)
	}
	return n
}

// notes counts the denials of this replica by namespace and image.
type notes struct {
	replica string
	fresh   chan struct{} // has an entry if an image was denied that has no Event yet

	mu    sync.Mutex
	made  int // counters, for their names
	of    map[verify.Namespace]map[string]*pending
	each  map[verify.Account]int
	total int
}

// pending is a counter, and how much of it is at the API server.
type pending struct {
	note
	namespace verify.Namespace
	account   verify.Account
	written   int       // the count that was written last
	after     time.Time // not before, because a write failed
}

func newNotes(replica string) *notes {
	return &notes{replica: replica, fresh: make(chan struct{}, 1), of: map[verify.Namespace]map[string]*pending{}, each: map[verify.Account]int{}}
}

// add counts a denial. If there is no room for its image, it is counted with the other ones
// of the namespace that had none.
func (n *notes) add(namespace verify.Namespace, account verify.Account, about note, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.of[namespace][about.Image]
	if p == nil && (n.total >= maxPending || n.each[account] >= maxPendingEach) {
		about = note{TraceID: about.TraceID}
		if p = n.of[namespace][""]; p == nil && n.total >= 2*maxPending {
			return // of namespaces that exist there are fewer
		}
	}
	if p == nil {
		n.made++
		p = &pending{namespace: namespace, account: account}
		p.First, p.Counter = now, n.replica+"-"+strconv.Itoa(n.made)+"-"+rand.String(8) // nobody can guess the next name
		if n.of[namespace] == nil {
			n.of[namespace] = map[string]*pending{}
		}
		n.of[namespace][about.Image] = p
		n.each[account]++
		n.total++
		select {
		case n.fresh <- struct{}{}:
		default: // somebody will look anyway
		}
	}
	if p.Count > 0 && p.Policy == about.Policy && p.Reason == about.Reason {
		about.TraceID = p.TraceID // the log has the first of the same denials
	}
	about.Counter, about.First, about.Last, about.Count = p.Counter, p.First, now, p.Count+1
	p.note = about
}

// advice returns what to do about an image that was denied: what this replica knows of its own
// denials, or the command that says it. It returns "" for what is no image.
func (n *notes) advice(namespace verify.Namespace, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.of[namespace][name]; p != nil && p.Remediation != "" {
		return p.Remediation
	}
	if _, err := image.Parse(name); err != nil {
		return ""
	}
	return fmt.Sprintf("landwaiter explain --namespace %s %s says what to do", namespace, name)
}

// due returns the counters that have to be written, the ones that never were first, and
// drops those that are idle.
func (n *notes) due(now time.Time) []pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []pending
	for _, images := range n.of {
		for _, p := range images {
			switch {
			case p.Count > p.written && !now.Before(p.after):
				found = append(found, *p)
			case p.Count == p.written && now.Sub(p.Last) > idleCounter:
				n.drop(p)
			}
		}
	}
	slices.SortFunc(found, func(a, b pending) int {
		return cmp.Or(cmp.Compare(min(a.written, 1), min(b.written, 1)), a.Last.Compare(b.Last), cmp.Compare(a.Counter, b.Counter))
	})
	return found
}

func (n *notes) drop(p *pending) {
	images := n.of[p.namespace]
	delete(images, p.Image)
	if len(images) == 0 {
		delete(n.of, p.namespace)
	}
	n.total--
	if n.each[p.account]--; n.each[p.account] <= 0 {
		delete(n.each, p.account)
	}
}

// settle records what became of a write: that it is done, that it waits, or that the
// namespace does not exist.
func (n *notes) settle(p pending, err error, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	current := n.of[p.namespace][p.Image]
	if current == nil || current.Counter != p.Counter {
		return // it is another counter now
	}
	switch {
	case err == nil:
		current.written = p.Count
	case isGone(err):
		n.drop(current)
	default:
		current.after = now.Add(retryAfter)
	}
}

func (n *notes) forget(namespace verify.Namespace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.of[namespace] {
		n.drop(p)
	}
}

// text returns what the Event of a note says.
func (n *note) text() string {
	if n.Image == "" {
		return fmt.Sprintf("more images were denied %s, which are not counted apart (%s)", times(n.Count), dryRun)
	}
	text := fmt.Sprintf("image %s was denied %s: %s", n.Image, times(n.Count), n.Reason)
	if n.Remediation != "" {
		text += ". " + toFix + n.Remediation
	}
	return policy.Shown(text, maxMessageBytes-len(dryRun)-2) + "; " + dryRun
}

// times says how often something happened.
func times(count int) string {
	if count == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", count)
}
