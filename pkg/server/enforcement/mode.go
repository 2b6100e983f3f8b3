package enforcement

import (
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// maxSeries bounds the namespaces that have series of their own. The others are added up.
const maxSeries = 1000

// otherLabel stands for all namespaces past the limit.
const otherLabel = "other"

// series are the labels of one. Tenants are no others than those of namespaces with series of
// their own, so they are bounded too.
type series struct {
	mode              constraint.Mode
	namespace, tenant string
}

// count returns how many namespaces each series stands for. A namespace whose mode is not known yet
// has none.
func count(cluster Cluster, modes map[verify.Namespace]constraint.Mode) map[series]int {
	counts := map[series]int{}
	own := 0
	for _, namespace := range cluster.Namespaces() { // sorted, so that the same ones have series
		mode, known := modes[namespace]
		if !known || namespace == verify.Cluster {
			continue
		}
		s := series{mode, otherLabel, ""}
		if own++; own <= maxSeries {
			s.namespace, s.tenant = namespace.Label(), cluster.Tenant(namespace)
		}
		counts[s]++
	}
	return counts
}
