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

// note is what a replica says of its denials of an image in a namespace, or of images of a registry
// that it left undecided there: in the annotation of an Event, and in a report. Count is a total, so
// that a note that comes twice, or late, changes nothing.
type note struct {
	Counter  string `json:"counter"`            // unique: of one replica, namespace and key
	Registry string `json:"registry,omitempty"` // empty: denials of Image
	Image    string `json:"image"`              // of a registry, the last one; empty: images that had no counter of their own
	Digest   string `json:"digest,omitempty"`
	Policy   string `json:"policy"`
	// Others are the further policies that deny, at most [policy.MaxOthers].
	Others []string `json:"others,omitempty"`
	Reason string   `json:"reason"`
	// Remedy is what mends Registry, if that is known.
	Remedy policy.Remedy `json:"remedy,omitempty"`
	// Advice is never read from an Event: it may be a command to copy, or name a stranger to ask.
	Remediation string    `json:"-"`
	Command     string    `json:"-"`
	Contact     string    `json:"-"`
	TraceID     string    `json:"traceID,omitempty"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	Count       int       `json:"count"`
	// Earlier is how many of Count are of earlier outages of Registry, and Ended when the last one of those ended.
	Earlier int       `json:"earlier,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
	// Answered is since when images of Registry are decided again; zero if the last one was not.
	Answered time.Time `json:"answered,omitzero"`
}

var (
	counterName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	traceName   = regexp.MustCompile(`^[A-Za-z0-9-]{0,64}$`)
)

// parseNote reads the annotation of an Event, which anybody may have written who may write
// Events in the namespace.
func parseNote(text string, now time.Time) (note, bool) {
	var n note
	if len(text) > maxNoteBytes || json.Unmarshal([]byte(text), &n) != nil {
		return note{}, false
	}
	if n.First.Before(now.Add(-10*keepDenials)) || !counterName.MatchString(n.Counter) || !traceName.MatchString(n.TraceID) || n.Count < 1 || n.Count > maxCount || n.Earlier < 0 || n.Earlier >= n.Count ||
		n.Last.Before(n.First) || n.Last.After(now.Add(maxAhead)) || now.Sub(n.Last) > keepDenials || n.Answered.After(now.Add(maxAhead)) || n.Ended.After(now.Add(maxAhead)) {
		return note{}, false
	}
	n.Registry = policy.Shown(n.Registry, maxNameBytes)
	n.Image, n.Digest, n.Policy = policy.Shown(n.Image, maxImageBytes), policy.Shown(n.Digest, maxNameBytes), policy.Shown(n.Policy, maxNameBytes)
	n.Reason = policy.Shown(n.Reason, maxReasonBytes)
	if _, err := image.Parse(n.Registry + "/x"); err != nil || n.Remedy.At(n.Registry) == "" {
		n.Remedy = "" // the advice would repeat what a stranger wrote
	}
	n.Others = n.Others[:min(len(n.Others), policy.MaxOthers)]
	for i, name := range n.Others {
		n.Others[i] = policy.Shown(name, maxNameBytes)
	}
	for _, advice := range []string{". To fix: ", ". Command: ", ". Ask: "} { // no reason of ours has any
		n.Reason, _, _ = strings.Cut(n.Reason, advice)
	}
	for _, at := range []*time.Time{&n.First, &n.Last, &n.Answered, &n.Ended} {
		*at = at.UTC().Truncate(time.Second)
	}
	return n, true
}

// denial is what a report says of an image that was denied in a namespace, or of a registry with
// images that were undecided there, of which image is the last.
type denial struct {
	image, digest, policy, reason, remediation, command, contact, traceID string
	remedy                                                                policy.Remedy // of the registry

	first, last time.Time
	answered    time.Time // since when images of the registry are decided again, if that is after last
	counters    map[string]counter
	ended       int // the sum of counters that were added up
	before      int // of all, those of earlier outages of the registry
}

// counter is a replica's count of one denial.
type counter struct {
	Count int   `json:"n"`
	Last  int64 `json:"t"` // Unix seconds
}

// count returns how often the image was denied, or images of the registry undecided in its last outage.
func (d *denial) count() int { return d.total() - d.before }

func (d *denial) total() int {
	total := d.ended
	for _, c := range d.counters {
		total += c.Count
	}
	return total
}

// fold takes a note over. It reports whether it changed anything.
func (d *denial) fold(n note, now time.Time) bool {
	known, ok := d.counters[n.Counter]
	if n.Count <= known.Count || !ok && now.Sub(n.Last) > endedCounter {
		return false // it is old, and may have been added up
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

// compact adds up the counters that no replica goes on with, and the oldest ones if there
// are too many.
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

// merge takes over what another term of the lease has reported: of each counter the higher
// count, because both may have folded the same notes.
func (d *denial) merge(other *denial, now time.Time) {
	if other.ended > d.ended { // it has added up counters that are still apart here
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
		d.last, d.image, d.digest, d.policy, d.reason, d.traceID = other.last, other.image, other.digest, other.policy, other.reason, other.traceID
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

// restore reads what store wrote. It is the text of a report, so it is bounded again.
func (d *denial) restore(text string) bool {
	var s storedCounters
	if len(text) > maxNoteBytes || json.Unmarshal([]byte(text), &s) != nil || len(s.Counters) > maxCounters || s.Ended < 0 || s.Ended > maxCount || s.Before < 0 {
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
