package report

import (
	"github.com/prometheus/client_golang/prometheus"
)

// gauge is the collector of running images. Only the replica that leads has series, so that
// they can be added up.
type gauge struct {
	reporter *Reporter
	desc     *prometheus.Desc
}

func newGauge(r *Reporter) *gauge {
	return &gauge{r, prometheus.NewDesc("landwaiter_running_images",
		"Distinct images of running pods, by namespace and the result of the last verification: pass, fail, warn, error or skip. Of the replica that leads. With --reports.",
		[]string{"namespace", "outcome"}, nil)}
}

// Describe implements [prometheus.Collector].
func (g *gauge) Describe(into chan<- *prometheus.Desc) { into <- g.desc }

// Collect implements [prometheus.Collector].
func (g *gauge) Collect(into chan<- prometheus.Metric) {
	t := g.reporter.leading.Load()
	if t == nil {
		return
	}
	counts := map[[2]string]int{}
	t.mu.Lock()
	for namespace, s := range t.spaces {
		for result, n := range s.counts() {
			counts[[2]string{t.accounts.NamespaceLabel(namespace), result}] += n
		}
	}
	t.mu.Unlock()
	for labels, n := range counts {
		into <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}
