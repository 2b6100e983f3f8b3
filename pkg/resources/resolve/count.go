package resolve

import (
	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Count says how many resources of one kind there are.
type Count struct{ All, NotReady int }

// Counts returns, for each kind of its scope, how many resources a namespace or the
// cluster has, and how many of them have a problem. It is cheap
// enough to be asked about all namespaces for each scrape. It returns nil for a namespace
// that is not in s.
func (s *Snapshot) Counts(namespace verify.Namespace) map[string]Count {
	v, ok := s.Views[namespace]
	if !ok {
		return nil
	}
	own := v.Own
	if namespace == verify.Cluster {
		own = s.Cluster
	}
	broken := map[policy.ObjectRef]bool{}
	for _, p := range s.ProblemsOf(namespace) {
		broken[p.Source] = true
	}
	counts := map[string]Count{}
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced == (namespace != verify.Cluster) {
			counts[kind.Name] = Count{}
		}
	}
	for source := range own.Objects.Generations() {
		count := counts[source.Kind]
		count.All++
		if broken[source] {
			count.NotReady++
		}
		counts[source.Kind] = count
	}
	return counts
}
