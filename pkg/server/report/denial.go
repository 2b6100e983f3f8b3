package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// note is a replica's record of its denials of an image in a namespace, or of undecided images of a
// registry: in the annotation of an Event, and in a report. Count is a total, so that a note that
// arrives twice, or late, changes nothing.
type note struct {
	Counter  string `json:"counter"`            // unique: of one replica, namespace and key
	Registry string `json:"registry,omitempty"` // empty: denials of Image
	Image    string `json:"image"`              // of a registry, the latest one; empty: images without their own counter
	Digest   string `json:"digest,omitempty"`
	Policy   string `json:"policy"`
	// Others are the further policies that deny, at most [policy.MaxOthers].
	Others []string `json:"others,omitempty"`
	Reason string   `json:"reason"`
	// Remedy is the repair of Registry, if known.
	Remedy policy.Remedy `json:"remedy,omitempty"`
	// Advice is never read from an Event: there, it could be a stranger's command or contact.
	Remediation string    `json:"-"`
	Command     string    `json:"-"`
	Contact     string    `json:"-"`
	TraceID     string    `json:"traceID,omitempty"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	Count       int       `json:"count"`
	// Earlier is the part of Count from earlier outages of Registry, and Ended the end of the latest of those.
	Earlier int       `json:"earlier,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
	// Answered is since when images of Registry are decided again; zero if the last one was not.
	Answered time.Time `json:"answered,omitzero"`
}

var (
	counterName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	traceName   = regexp.MustCompile(`^[A-Za-z0-9-]{0,64}$`)
)

// parseNote reads the annotation of an Event, which anyone who can write Events in the
// namespace may have written.
func parseNote(text string, now time.Time) (note, bool) {
	var n note
	if len(text) > maxNoteBytes || json.Unmarshal([]byte(text), &n) != nil {
		return note{}, false
	}
	if n.First.Before(now.Add(-10*keepDenials)) || !counterName.MatchString(n.Counter) || !traceName.MatchString(n.TraceID) || n.Count < 1 ||
		n.Count > maxCount || n.Earlier < 0 || n.Earlier >= n.Count ||
		n.Last.Before(n.First) || n.Last.After(now.Add(maxAhead)) || now.Sub(n.Last) > keepDenials || n.Answered.After(now.Add(maxAhead)) ||
		n.Ended.After(now.Add(maxAhead)) {
		return note{}, false
	}
	n.Registry = policy.Shown(n.Registry, maxNameBytes)
	n.Image, n.Digest, n.Policy = policy.Shown(n.Image, maxImageBytes), policy.Shown(n.Digest, maxNameBytes),
		policy.Shown(n.Policy, maxNameBytes)
	n.Reason = policy.Shown(n.Reason, maxReasonBytes)
	if _, err := image.Parse(n.Registry + "/x"); err != nil || n.Remedy.At(n.Registry) == "" {
		n.Remedy = "" // the advice would quote a stranger
	}
	n.Others = n.Others[:min(len(n.Others), policy.MaxOthers)]
	for i, name := range n.Others {
		n.Others[i] = policy.Shown(name, maxNameBytes)
	}
	for _, advice := range []string{". To fix", ". Command: ", ". Ask: "} { // none of our reasons has any
		n.Reason, _, _ = strings.Cut(n.Reason, advice)
	}
	for _, at := range []*time.Time{&n.First, &n.Last, &n.Answered, &n.Ended} {
		*at = at.UTC().Truncate(time.Second)
	}
	return n, true
}

// denial is a report's record of an image that was denied in a namespace, or of a registry with
// undecided images there, of which image is the latest.
type denial struct {
	image, digest, policy, reason, remediation, command, contact, traceID string
	remedy                                                                policy.Remedy // of the registry

	first, last time.Time
	answered    time.Time // since when images of the registry are decided again, if that is after last
	counters    map[string]counter
	ended       int // the sum of merged counters
	before      int // of all, the part from earlier outages of the registry
}

// counter is a replica's count of one denial.
type counter struct {
	Count int   `json:"n"`
	Last  int64 `json:"t"` // Unix seconds
}

// count returns how often the image was denied, or how many images of the registry were undecided in
// its latest outage.
func (d *denial) count() int { return d.total() - d.before }

func (d *denial) total() int {
	total := d.ended
	for _, c := range d.counters {
		total += c.Count
	}
	return total
}

// fold merges a note. It reports whether it changed anything.
func (d *denial) fold(n note, now time.Time) bool {
	known, ok := d.counters[n.Counter]
	if n.Count <= known.Count || !ok && now.Sub(n.Last) > endedCounter {
		return false // it is old, and may have been merged
	}
	if d.counters == nil {
		d.counters = map[string]counter{}
	}
	d.counters[n.Counter] = counter{n.Count, n.Last.Unix()}
	if d.first.IsZero() || n.First.Before(d.first) {
		d.first = n.First
	}
	if !n.Last.Before(d.last) {
		d.last, d.image, d.digest, d.policy, d.reason, d.traceID = n.Last, n.Image, n.Digest, n.Policy, n.Reason, n.TraceID
		d.remedy, d.remediation, d.command, d.contact = n.Remedy, n.Remediation, n.Command, n.Contact
	}
	d.compact(now)
	return true
}

// compact sums the counters that no replica continues, and the oldest ones if there are too
// many.
func (d *denial) compact(now time.Time) {
	ids := slices.SortedFunc(maps.Keys(d.counters), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.counters[b].Last, d.counters[a].Last), strings.Compare(a, b)) // the latest first
	})
	for i, id := range ids {
		if c := d.counters[id]; i >= maxCounters || now.Sub(time.Unix(c.Last, 0)) > endedCounter {
			d.ended += c.Count
			delete(d.counters, id)
		}
	}
}

// merge adds what another term of the lease has reported: the higher count of each counter,
// because both may have folded the same notes.
func (d *denial) merge(other *denial, now time.Time) {
	if other.ended > d.ended { // it has merged counters that are still separate here
		for id, c := range d.counters {
			if _, apart := other.counters[id]; !apart && now.Sub(time.Unix(c.Last, 0)) > endedCounter {
				delete(d.counters, id)
			}
		}
	}
	for id, c := range other.counters {
		if known, ok := d.counters[id]; !ok || c.Count > known.Count {
			if d.counters == nil {
				d.counters = map[string]counter{}
			}
			d.counters[id] = c
		}
	}
	d.ended = max(d.ended, other.ended)
	if other.answered.After(d.answered) {
		d.answered = other.answered
	}
	switch {
	case other.before > d.before: // it knows of a later outage
		d.before, d.first = other.before, other.first
	case other.before == d.before && (d.first.IsZero() || !other.first.IsZero() && other.first.Before(d.first)):
		d.first = other.first
	}
	if other.last.After(d.last) {
		d.last, d.image, d.digest, d.policy, d.reason, d.traceID = other.last, other.image, other.digest, other.policy,
			other.reason, other.traceID
		d.remedy, d.remediation, d.command, d.contact = other.remedy, other.remediation, other.command, other.contact
	}
}

// storedCounters is the property v1beta1.PropertyCounters.
type storedCounters struct {
	Ended    int                `json:"ended,omitempty"`
	Before   int                `json:"before,omitempty"`
	Counters map[string]counter `json:"by,omitempty"`
}

func (d *denial) store() string {
	text, err := json.Marshal(storedCounters{d.ended, d.before, d.counters})
	if err != nil {
		return "" // numbers and strings can be marshalled
	}
	return string(text)
}

// restore reads the output of store. It comes from a report, so it is bounded again.
func (d *denial) restore(text string) bool {
	var s storedCounters
	if len(text) > maxNoteBytes || json.Unmarshal([]byte(text), &s) != nil || len(s.Counters) > maxCounters || s.Ended < 0 ||
		s.Ended > maxCount || s.Before < 0 {
		return false
	}
	for id, c := range s.Counters {
		if !counterName.MatchString(id) || c.Count < 1 || c.Count > maxCount {
			return false
		}
	}
	d.ended, d.before, d.counters = s.Ended, s.Before, s.Counters
	return d.count() > 0
}
