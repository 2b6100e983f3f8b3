package conditions

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Check compiles objects without reaching out, and returns what their owners should
// correct: problems, resources that can never be met or that nothing uses, and exceptions that
// have ended.
func Check(objects resource.Objects) []resource.Problem {
	s, problems := resolve.New(objects, nil, resolve.Nowhere())
	return slices.Concat(problems, Ineffective(s), Ended(s, time.Now()))
}

// Ineffective returns policies that can never be met, and resources of namespaces that
// nothing uses, with the reasons of their condition Effective. It leaves out cluster
// resources that nothing uses: a namespace that is not in s may use them.
func Ineffective(s *resolve.Snapshot) []resource.Problem {
	var found []resource.Problem
	for _, namespace := range s.Namespaces() {
		reports := Reports(s, namespace)
		for _, source := range slices.SortedFunc(maps.Keys(reports), func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) }) {
			said := reports[source].Effective
			if said.Reason == policy.ReasonUnsatisfiable || said.Reason == policy.ReasonUnused && source.Namespace != "" {
				found = append(found, resource.Problem{Source: source, Reason: said.Reason, Message: said.Message})
			}
		}
	}
	return found
}

// Ended returns a problem for each exception that has ended at a moment.
func Ended(s *resolve.Snapshot, now time.Time) []resource.Problem {
	var found []resource.Problem
	for _, namespace := range s.Namespaces() {
		own := s.Level(namespace)
		for source, report := range Reports(s, namespace) {
			if x := exceptionNamed(own, source); x != nil && report.Until.IsZero() { // in files, who delegates it may be missing
				report.Until = x.Until
			}
			if at := report.EffectiveAt(now); !report.Until.IsZero() && at.Reason == policy.ReasonExpired {
				found = append(found, resource.Problem{Source: source, Reason: at.Reason, Message: at.Message})
			}
		}
	}
	slices.SortFunc(found, func(a, b resource.Problem) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	return found
}
