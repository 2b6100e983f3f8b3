package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Check compiles objects without network access, and returns what their owners should fix:
// problems, resources that can never be met or that nothing uses, exceptions that have ended,
// and resources that need a review.
func Check(objects resource.Objects) []resource.Problem {
	s, problems := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(objects), nil)
	var reviewed []resource.Problem
	for _, o := range objects.Resources {
		reviewed = append(reviewed, Review(o)...)
	}
	for _, namespace := range s.Namespaces() {
		reviewed = append(reviewed, unreachedRules(s.Level(namespace))...)
	}
	return slices.Concat(problems, Ineffective(s), unreachable(s), Ended(s, time.Now()), reviewed)
}

// Ineffective returns policies that can never be met, and unused resources of namespaces, with the
// reasons of their condition Effective. It omits unused cluster resources, because a namespace outside
// of s may use them, except ClusterQuotas, which name their namespaces and Tenants. It also omits
// exceptions, which policies elsewhere may need.
func Ineffective(s *resolve.Snapshot) []resource.Problem {
	var found []resource.Problem
	for _, namespace := range s.Namespaces() {
		reports := Reports(s, namespace)
		for _, source := range slices.SortedFunc(maps.Keys(reports), func(a, b policy.ObjectRef) int {
			return strings.Compare(a.String(), b.String())
		}) {
			said := reports[source].Effective
			nobody := said.Reason == policy.ReasonAppliesNowhere && source.Kind == v1beta1.KindClusterQuota && reports[source].Ready.True
			if nobody || said.Reason == policy.ReasonUnsatisfiable || said.Reason == policy.ReasonUnused && source.Namespace != "" &&
				source.Kind != v1beta1.KindException {
				found = append(found, resource.Problem{Source: source, Reason: said.Reason, Message: said.Message})
			}
		}
	}
	return found
}

// unreachable returns a problem for each quota whose maxInFlight is more than a quota owner ever gets with serve's
// default limit.
func unreachable(s *resolve.Snapshot) []resource.Problem {
	var found []resource.Problem
	for _, e := range resolve.EntriesOf[v1beta1.ClusterQuotaSpec](s.Cluster().Objects) {
		if e.Broken == nil && e.Spec.MaxInFlight > verify.DefaultInFlight/2 {
			found = append(found, resource.Problem{Source: e.Source, Reason: policy.ReasonNeverReached,
				Message: fmt.Sprintf("spec.maxInFlight is %d, and a quota owner gets at most half of --limit in-flight, which is %d by default; set "+
					"it to at most %d, or raise the flag with extraArgs of the chart", e.Spec.MaxInFlight, verify.DefaultInFlight,
					verify.DefaultInFlight/2)})
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
			if x := exceptionNamed(own, source); x != nil && report.Until.IsZero() { // files may lack the delegation
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
