package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// endsKept is how long the first ends are kept, which only time changes.
const endsKept = time.Hour

// ends returns the first end of each kind in each namespace. Past [maxNamespaceLabels], a
// namespace shares a series with others, which has the first end of all of them.
func (r *resources) ends(snapshot *compile.Snapshot, now time.Time) []prometheus.Metric {
	first := map[[2]string]time.Time{}
	labels := 0
	for _, namespace := range snapshot.Namespaces() { // sorted, so that the same ones have series
		label, counted := namespace.Label(), false
		for source, ends := range snapshot.EndsOf(namespace) {
			at, ok := ends.First(now)
			if !ok {
				continue
			}
			if namespace != verify.Cluster && !counted {
				counted = true
				if labels++; labels > maxNamespaceLabels {
					label = otherLabel
				}
			}
			series := [2]string{source.Kind, label}
			if earlier, ok := first[series]; !ok || at.Before(earlier) {
				first[series] = at
			}
		}
	}
	var metrics []prometheus.Metric
	for labels, at := range first {
		metrics = append(metrics, prometheus.MustNewConstMetric(r.expires, prometheus.GaugeValue, float64(at.Unix()), labels[0], labels[1]))
	}
	return metrics
}
