package conditions

import (
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

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
