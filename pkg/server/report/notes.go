package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

var _ provider.Observer = (*Reporter)(nil)

// Observe records the denials and undecided images of an admission: the pod is refused for both.
// Audits are about existing objects.
func (r *Reporter) Observe(_ context.Context, o provider.Observation) {
	if o.Source != provider.SourceAdmission {
		return
	}
	for i := range o.Keys {
		k := &o.Keys[i]
		denied := o.Operation == provider.OperationVerify && (k.Answer == verify.AnswerDenied || k.Answer == verify.AnswerInvalid)
		if k.Repeated || k.Namespace == verify.Cluster || !denied && !k.Undecided() {
			r.answered(k)
			continue
		}
		if k.Reference.Name() == v1beta1.IsolationImage {
			continue // a team that tests its own isolation would write into another's report
		}
		n, of := noteOf(k, o.TraceID), r.notes
		if k.Answer == verify.AnswerInvalid {
			n.Contact = policy.JoinContacts(r.accounts.Contacts(k.Namespace, []string{""}), maxContactBytes)
		}
		if k.Undecided() {
			n.Registry, of = registryOf(k), r.registries
			if k.Result != nil && n.Remediation == k.Result.Verdict.Remedy.At(n.Registry) { // else it is a mirror's
				n.Remedy = k.Result.Verdict.Remedy
			}
		}
		of.add(k.Namespace, r.accounts.Account(k.Namespace), n, r.now())
		r.answered(k)
	}
}

// noteOf returns the note about the image of a key.
func noteOf(k *provider.KeyObservation, traceID string) note {
	n := note{Image: k.Reference.String(), Reason: policy.Shown(k.Reason, maxReasonBytes), TraceID: traceID}
	if k.Answer == verify.AnswerInvalid {
		n.Image = strings.TrimPrefix(k.Key, "["+string(k.Namespace)+"]")
	}
	n.Image = policy.Shown(n.Image, maxImageBytes)
	if k.Result != nil {
		v := k.Result.Verdict
		n.Digest, n.Policy, n.Others = string(k.Result.Digest), sourceOf(v.Policy), othersOf(v)
		n.Reason, n.Contact = policy.Shown(v.Reasons(maxReasonBytes), maxReasonBytes), v.Contacts(maxContactBytes)
		n.Remediation, n.Command = remedyOf(v)
	}
	return n
}

// othersOf returns the distinct further policies of a verdict that denies.
func othersOf(v policy.Verdict) []string {
	var names []string
	for _, d := range v.Others {
		if name := sourceOf(d.Policy); d.Policy != v.Policy && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// remedyOf returns the bounded advice of a verdict. It omits a command that is too long: a truncated
// command would do something else.
func remedyOf(v policy.Verdict) (remediation, command string) {
	remediation, command = v.Remedies(maxRemediationBytes)
	if command = policy.OneLine(command); len(command) > maxCommandBytes {
		command = ""
	}
	return policy.Shown(remediation, maxRemediationBytes), command
}

// notes counts this replica's denials by namespace and image, or its undecided images by
// namespace and registry.
type notes struct {
	replica string
	fresh   chan struct{} // has a value if there is a counter without an Event
	// most and mostEach bound the counters: of all namespaces, and of one account.
	most, mostEach int

	mu    sync.Mutex
	made  int                                      // counters, for their names
	of    map[verify.Namespace]map[string]*pending // by note.key
	each  map[verify.Account]int
	total atomic.Int64
}

// pending is a counter, with its written part.
type pending struct {
	note
	namespace verify.Namespace
	account   verify.Account
	written   int       // the count that was written last
	told      time.Time // note.Answered as it was written last
	after     time.Time // not before, because a write failed, or would exceed a limit
}

func newNotes(replica string, fresh chan struct{}, most, mostEach int) *notes {
	return &notes{replica: replica, fresh: fresh, most: most, mostEach: mostEach, of: map[verify.Namespace]map[string]*pending{},
		each: map[verify.Account]int{}}
}

// add counts a note. If there is no space for its image or registry, it counts for the
// namespace's other ones.
func (n *notes) add(namespace verify.Namespace, account verify.Account, about note, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.of[namespace][about.key()]
	if total := int(n.total.Load()); p == nil && (total >= n.most || n.each[account] >= n.mostEach) {
		about = about.other()
		if p = n.of[namespace][about.key()]; p == nil && total >= 2*n.most {
			return // existing namespaces are fewer
		}
	}
	if p == nil {
		n.made++
		p = &pending{namespace: namespace, account: account}
		p.First, p.Counter = now, n.replica+"-"+strconv.Itoa(n.made)+"-"+rand.String(8) // nobody can guess the next name
		if n.of[namespace] == nil {
			n.of[namespace] = map[string]*pending{}
		}
		n.of[namespace][about.key()] = p
		n.each[account]++
		n.total.Add(1)
		select {
		case n.fresh <- struct{}{}:
		default: // somebody will look anyway
		}
	}
	if p.Count > 0 && p.Policy == about.Policy && p.Reason == about.Reason {
		about.TraceID = p.TraceID // the log has the first of equal denials
	}
	if !p.Answered.IsZero() { // another outage begins
		p.First, p.Earlier, p.Ended = now, p.Count, p.Answered
	}
	about.Counter, about.First, about.Last, about.Count, about.Earlier, about.Ended = p.Counter, p.First, now, p.Count+1, p.Earlier, p.Ended
	p.note = about
}

// advice returns the advice for the image of a note: the one that this replica has, or the
// command that prints it. It returns none for a malformed image.
func (n *notes) advice(namespace verify.Namespace, about note) (remediation, command string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.of[namespace][about.key()]; p != nil && p.Remediation+p.Command != "" {
		return p.Remediation, p.Command
	}
	if _, err := image.Parse(about.Image); err != nil {
		return "", ""
	}
	if remedy := about.Remedy.At(about.Registry); about.Registry != "" && remedy != "" {
		return remedy, ""
	}
	if about.Registry != "" && about.Registry != v1beta1.RegistriesNone {
		return "controllers try their pods again, a pod without one has to be created again; if it lasts, ask whoever runs " + about.Registry, ""
	}
	return "ask Landwaiter what is missing", fmt.Sprintf("landwaiter verify --explain --namespace %s %s", namespace, about.Image)
}

// due returns the counters to write, unwritten ones first, and drops idle ones.
func (n *notes) due(now time.Time) []pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []pending
	for _, images := range n.of {
		for _, p := range images {
			switch {
			case p.stale():
				if !now.Before(p.after) {
					found = append(found, *p)
				}
			case now.Sub(p.Last) > idleCounter:
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
	own := n.of[p.namespace]
	delete(own, p.key())
	if len(own) == 0 {
		delete(n.of, p.namespace)
	}
	n.total.Add(-1)
	if n.each[p.account]--; n.each[p.account] <= 0 {
		delete(n.each, p.account)
	}
}

// settle records the result of a write: that it is done, that it waits, or that the namespace
// does not exist.
func (n *notes) settle(p pending, err error, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	current := n.of[p.namespace][p.key()]
	if current == nil || current.Counter != p.Counter {
		return // it is another counter now
	}
	switch {
	case err == nil:
		current.written, current.told = p.Count, p.Answered
		if p.Registry != "" {
			current.after = now.Add(registryEvery)
		}
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

// text returns the text of a note's Event.
func (n *note) text() string {
	if n.Registry != "" {
		return n.undecided()
	}
	if n.Image == "" {
		return fmt.Sprintf("more images failed verification %s, which are not counted apart (%s)", times(n.Count), decides)
	}
	return message(fmt.Sprintf("image %s failed verification %s (%s): ", policy.Cut(n.Image, maxMessageBytes/2), times(n.Count), decides),
		policy.Objection{Reason: n.Reason, Remediation: n.Remediation, Command: n.Command, Contact: n.Contact})
}

// message returns the text of an Event. It ends with the command, so that it can be copied.
func message(head string, d policy.Objection) string {
	return policy.Shown(head+d.TextWithin(maxMessageBytes-len(head)), maxMessageBytes)
}

// times says how often something happened.
func times(count int) string {
	if count == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", count)
}

// annotationNote is the annotation of an Event ImageDenied that the leader reads.
const annotationNote = "landwaiter.dev/denial"

// about returns a workload with an image, zero if there is none.
func (r *Reporter) about(namespace verify.Namespace, image string) workload.Ref {
	if image != "" {
		if of := r.pods.Having(namespace, image, 1); len(of) > 0 {
			return of[0]
		}
	}
	return workload.Ref{}
}

// isGone reports whether a namespace does not exist any more, or soon will not.
func isGone(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

// noteWriter writes the notes of this replica.
type noteWriter struct {
	*Reporter
	all       map[*notes]*rate.Limiter
	each      *limiters
	complaint rate.Sometimes
}

func newNoteWriter(r *Reporter) *noteWriter {
	return &noteWriter{Reporter: r, each: newLimiters(accountNotesPerMinute, accountNotesAtOnce),
		all: map[*notes]*rate.Limiter{r.notes: rate.NewLimiter(notesPerSecond, notesAtOnce),
			r.registries: rate.NewLimiter(registriesPerSecond, registriesAtOnce)},
		complaint: rate.Sometimes{Interval: complainEvery}}
}

// write writes the due counters within the limits. The rest stays due. Registries come first:
// an account has few of them.
func (w *noteWriter) write(ctx context.Context, now time.Time) {
	for _, of := range []*notes{w.registries, w.notes} {
		w.writeOf(ctx, of, now)
	}
}

func (w *noteWriter) writeOf(ctx context.Context, of *notes, now time.Time) {
	for _, p := range of.due(now) {
		if w.all[of].TokensAt(now) < 1 {
			return
		}
		if !w.each.allow(p.account, now) {
			continue
		}
		w.all[of].AllowN(now, 1)
		err := w.save(ctx, p)
		if err != nil && ctx.Err() != nil {
			return // the last write before the end covers it
		}
		of.settle(p, err, now)
		if err != nil && !isGone(err) {
			w.complaint.Do(func() {
				w.log.WithFields(logrus.Fields{"namespace": p.namespace, "traceID": p.TraceID}).WithError(err).
					Warn("cannot write an Event about an image that was refused, will try again")
			})
		}
	}
}

// save creates the Event of a note, or updates it.
func (w *noteWriter) save(ctx context.Context, p pending) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	e, err := newNoted(p.namespace, p.note, w.about(p.namespace, p.Image))
	if err != nil {
		return err
	}
	events := w.clients.CoreV1().Events(string(p.namespace))
	if p.written > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": e.Annotations, "labels": e.Labels},
			"reason": e.Reason, "type": e.Type, "message": e.Message, "count": e.Count, "firstTimestamp": e.FirstTimestamp,
			"lastTimestamp": e.LastTimestamp})
		if err != nil {
			return fmt.Errorf("write a note: %w", err)
		}
		_, err = events.Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1beta1.ReportSource})
		if !apierrors.IsNotFound(err) || isGone(err) {
			return wrapped(err)
		}
	}
	_, err = events.Create(ctx, e, metav1.CreateOptions{FieldManager: v1beta1.ReportSource})
	if apierrors.IsAlreadyExists(err) { // an earlier answer was lost
		return w.save(ctx, pending{note: p.note, namespace: p.namespace, account: p.account, written: cmp.Or(p.written, 1)})
	}
	return wrapped(err)
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write an Event: %w", err)
}
