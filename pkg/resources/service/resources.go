package service

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// maxNamespaceLabels bounds the namespaces that have their own series. The others are summed
// as "other".
const maxNamespaceLabels = 1000

// resources is a collector that counts the resources of the current snapshot. Every replica
// has the same, regardless of which one writes statuses.
type resources struct {
	set                                 *Set
	named                               *namespaces // with their own series
	all, notReady, namespaces, loadedAt *prometheus.Desc
	expires, hash, tenant               *prometheus.Desc
	now                                 func() time.Time

	mu      sync.Mutex
	of      *resolve.Snapshot // that metrics describe
	at      time.Time         // when they were computed
	metrics []prometheus.Metric
}

func newResources(set *Set, named *namespaces, now func() time.Time) *resources {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("landwaiter_"+name, help, labels, nil)
	}
	return &resources{set: set, named: named, now: now,
		expires: desc("trust_expires_timestamp_seconds", "When the first certificate, CA, log, revocation list or TUF role of the resources "+
			"of a kind ends, in Unix time. Nothing that a successor covers counts.", "kind", "namespace"),
		all: desc("resources", "Resources that are in force, by kind.", "kind"),
		notReady: desc("resources_not_ready", "Resources whose condition Ready is False: what depends on them is denied. Namespaces without "+
			"any have no series.", "kind", "namespace"),
		namespaces: desc("namespaces", "Namespaces that resources are compiled for."),
		hash: desc("configuration_hash", "Number derived from a hash of the objects that determine this replica's decisions, for those "+
			"of the cluster and of namespaces. Replicas with the same objects report the same numbers; a replica that has not loaded its objects "+
			"reports none.", "scope"),
		tenant: desc("tenant_namespace", "Is 1 for each namespace of a Tenant that has series of its own. It is for joins: multiply by it, "+
			"on(namespace) group_left(tenant).", "tenant", "namespace"),
		loadedAt: desc("resources_loaded_timestamp_seconds", "When a change of resources last came into force, in Unix time; 0 "+
			"before the first."),
	}
}

// Describe implements [prometheus.Collector].
func (r *resources) Describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{r.all, r.notReady, r.namespaces, r.loadedAt, r.expires, r.hash, r.tenant} {
		into <- desc
	}
}

// Collect implements [prometheus.Collector].
func (r *resources) Collect(into chan<- prometheus.Metric) {
	loaded := 0.0
	if at := r.set.Changed(); !at.IsZero() {
		loaded = float64(at.UnixMilli()) / 1000
	}
	into <- prometheus.MustNewConstMetric(r.loadedAt, prometheus.GaugeValue, loaded)
	for _, metric := range r.current() {
		into <- metric
	}
	snapshot := r.set.Snapshot()
	for _, namespace := range r.named.values() {
		if tenant := snapshot.Tenant(namespace); tenant != "" {
			into <- prometheus.MustNewConstMetric(r.tenant, prometheus.GaugeValue, 1, tenant, namespace.Label())
		}
	}
}

// current returns the metrics of the current snapshot, which are computed only once in a
// while: scrapes of a large cluster must not take processor time from admission.
func (r *resources) current() []prometheus.Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot, now := r.set.Snapshot(), r.now()
	if snapshot != nil && (snapshot != r.of || now.Sub(r.at) > endsKept) {
		r.of, r.at, r.metrics = snapshot, now, append(r.compute(snapshot), r.ends(snapshot, now)...)
	}
	return r.metrics
}

func (r *resources) compute(snapshot *resolve.Snapshot) []prometheus.Metric {
	all, notReady := map[string]int{}, map[[2]string]int{}
	namespaces := 0
	for _, namespace := range snapshot.Namespaces() { // sorted, so that the same ones have series
		broken := map[string]int{}
		for kind, count := range snapshot.Counts(namespace) {
			all[kind] += count.All
			if count.NotReady > 0 || namespace == verify.Cluster {
				broken[kind] = count.NotReady
			}
		}
		if namespace != verify.Cluster {
			namespaces++
		}
		if len(broken) == 0 {
			continue
		}
		label := r.named.label(namespace)
		for kind, count := range broken {
			notReady[[2]string{kind, label}] += count
		}
	}
	ofCluster, ofNamespaces := snapshot.Sums()
	metrics := []prometheus.Metric{prometheus.MustNewConstMetric(r.namespaces, prometheus.GaugeValue, float64(namespaces)),
		prometheus.MustNewConstMetric(r.hash, prometheus.GaugeValue, float64(ofCluster), "cluster"),
		prometheus.MustNewConstMetric(r.hash, prometheus.GaugeValue, float64(ofNamespaces), "namespaces")}
	for kind, count := range all {
		metrics = append(metrics, prometheus.MustNewConstMetric(r.all, prometheus.GaugeValue, float64(count), kind))
	}
	for labels, count := range notReady {
		metrics = append(metrics, prometheus.MustNewConstMetric(r.notReady, prometheus.GaugeValue, float64(count), labels[0], labels[1]))
	}
	return metrics
}

// endsKept is how long the first expiries are cached, which only time changes.
const endsKept = time.Hour

// ends returns the first expiry of each kind in each namespace. Beyond [maxNamespaceLabels],
// namespaces share a series with the first expiry of all of them.
func (r *resources) ends(snapshot *resolve.Snapshot, now time.Time) []prometheus.Metric {
	first := map[[2]string]time.Time{}
	for _, namespace := range snapshot.Namespaces() { // sorted, so that the same ones have series
		for source, ends := range snapshot.EndsOf(namespace) {
			at, ok := ends.First(now)
			if !ok {
				continue
			}
			series := [2]string{source.Kind, r.named.label(namespace)}
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
