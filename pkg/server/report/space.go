package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// space is the leader's state of one namespace: the content of its reports. It is pure: the
// time is an argument.
type space struct {
	images map[string]state
	// rows are when each container was last seen, and rowsOut is the number of running ones that
	// did not fit. Only flush uses them.
	rows    map[workload.Running]time.Time
	rowsOut int
	denials map[string]*denial
	// registries are the registries with undecided images, by name.
	registries map[string]*denial
	// leftOut is the number of denied images that did not fit.
	leftOut int
	// written are the reports at the API server, by name.
	written map[string]written
	// announcing are the unwritten Events of revocations, by name, and withheld since when the
	// reports wait for them. Only flush uses them.
	announcing map[string]*announcement
	withheld   time.Time
}

// written is a report as it was last written.
type written struct {
	version string // resourceVersion
	hash    string // of the content, "" if somebody else wrote it
	other   bool   // somebody else wrote it, and it has not been read since
}

func newSpace() *space {
	return &space{images: map[string]state{}, rows: map[workload.Running]time.Time{}, denials: map[string]*denial{},
		registries: map[string]*denial{}, written: map[string]written{}}
}

// revocation is an image that was allowed and is now denied.
type revocation struct {
	image string
	since time.Time // when the image began to be allowed
	state state
}

// fold merges a note. It reports whether it changed anything, and whether its image or
// registry is new in the report.
func (s *space) fold(n note, now time.Time) (changed, fresh bool) {
	if n.Registry != "" {
		return s.foldRegistry(n, now)
	}
	d := s.denials[n.Image]
	if d == nil {
		if len(s.denials) >= maxDenials && !n.Last.After(s.oldest().last) {
			return false, false // it did not fit before
		}
		d = &denial{image: n.Image}
	}
	fresh = d.last.IsZero()
	if !d.fold(n, now) {
		return false, false
	}
	s.denials[n.Image] = d
	for len(s.denials) > maxDenials {
		delete(s.denials, s.oldest().image)
		s.leftOut++
	}
	return true, fresh
}

// oldest returns the least recently denied image. There must be one.
func (s *space) oldest() *denial {
	return slices.MinFunc(slices.Collect(maps.Values(s.denials)), func(a, b *denial) int {
		return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.image, b.image))
	})
}

// expire drops old denials and registries.
func (s *space) expire(now time.Time) {
	maps.DeleteFunc(s.registries, func(_ string, d *denial) bool { return now.Sub(d.last) > keepRegistry })
	maps.DeleteFunc(s.denials, func(_ string, d *denial) bool { return now.Sub(d.last) > keepDenials })
	if len(s.denials) == 0 {
		s.leftOut = 0
	}
}

// counts returns the number of running images by result.
func (s *space) counts() map[string]int {
	counts := map[string]int{}
	for _, st := range s.images {
		if st.result != "" {
			counts[st.result]++
		}
	}
	return counts
}

// empty reports whether there is nothing to report and nothing written.
func (s *space) empty() bool {
	return len(s.images)+len(s.rows)+s.rowsOut+len(s.denials)+len(s.registries)+len(s.written) == 0
}

// severities are the results of reports, the worst first: results that do not fit are the
// best ones.
func severities() []string {
	return []string{v1beta1.ReportFail, v1beta1.ReportError, v1beta1.ReportWarn, v1beta1.ReportSkip, v1beta1.ReportPass}
}

// severityOrder is the position of a result among severities, negative if it is none.
func severityOrder(result string) int { return slices.Index(severities(), result) }
