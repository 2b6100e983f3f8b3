package enforcement

import (
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// maxSeries bounds the namespaces with their own series. The others are summed.
const maxSeries = 1000

// otherLabel is the label of all namespaces beyond the limit.
const otherLabel = "other"

// series are the labels of one series. Only namespaces with their own series have a Tenant's
// label, so Tenants are bounded too.
type series struct {
	mode              constraint.Mode
	namespace, tenant string
}

// count returns the number of namespaces of each series. A namespace whose mode is not known yet
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
