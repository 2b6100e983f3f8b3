package service

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
)

// Register registers the metrics of the caches, of requests to registries and of resources;
// those of Redis only if it is configured. Call it once.
func (s *Service) Register(metrics *prometheus.Registry) {
	s.registerMemory(metrics)
	s.registerRedis(metrics)
	metrics.MustRegister(s.requests.count, s.requests.byNamespace, s.requests.duration, s.requests.wait,
		newResources(s.set, s.namespaces, time.Now))
}

// counted registers a counter whose value is stored elsewhere.
func counted(metrics *prometheus.Registry, value *atomic.Int64, name, help string, labels prometheus.Labels) {
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "landwaiter_" + name, Help: help, ConstLabels: labels},
		func() float64 { return float64(value.Load()) }))
}

// measured registers a gauge whose value is stored elsewhere.
func measured(metrics *prometheus.Registry, value func() int64, name, help string, labels prometheus.Labels) {
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "landwaiter_" + name, Help: help, ConstLabels: labels},
		func() float64 { return float64(max(value(), 0)) })) // an entry may leave before it is counted
}

func (s *Service) registerMemory(metrics *prometheus.Registry) {
	if s.memory == nil {
		return
	}
	const lookups, evictions = "cache_lookups_total", "cache_evictions_total"
	for kind, memory := range map[verify.Kind]*cache.Memory{verify.KindVerdict: s.memory, verify.KindTag: s.memory,
		verify.KindEvidence: s.evidence} {
		stats := memory.Stats(kind)
		labeled := func(name, value string) prometheus.Labels {
			return prometheus.Labels{"kind": string(kind), name: value}
		}
		const helpLookups = "Lookups in the memory of this replica, by kind of entry and outcome."
		counted(metrics, &stats.Hits, lookups, helpLookups, labeled("outcome", "hit"))
		counted(metrics, &stats.Misses, lookups, helpLookups, labeled("outcome", "miss"))
		const helpEvictions = "Entries that left memory before they expired: because all of it (memory), or its quota owner's share of it " +
			"(share), was used up."
		counted(metrics, &stats.Overflowed, evictions, helpEvictions, labeled("reason", "memory"))
		counted(metrics, &stats.OverShare, evictions, helpEvictions, labeled("reason", "share"))
		measured(metrics, stats.Entries.Load, "cache_entries", "Entries in memory.", prometheus.Labels{"kind": string(kind)})
		measured(metrics, stats.Bytes.Load, "cache_bytes", "Bytes of memory that entries take, estimated.",
			prometheus.Labels{"kind": string(kind)})
	}
	measured(metrics, s.memory.Size, "cache_limit_bytes", "Bytes of memory that verdicts and tags together may take: --limit cache-bytes. "+
		"Evidence may take half as much.", nil)
}

func (s *Service) registerRedis(metrics *prometheus.Registry) {
	stats := s.RedisStats()
	if stats == nil {
		return
	}
	for outcome, value := range map[string]*atomic.Int64{"hit": &stats.Hits, "miss": &stats.Misses, "failure": &stats.Failures,
		"skipped": &stats.Skipped, "dropped": &stats.Dropped, "unopened": &stats.Unopened} {
		counted(metrics, value, "redis_commands_total", "Commands to Redis by outcome. With --redis-url.", prometheus.Labels{"outcome": outcome})
	}
	counted(metrics, &stats.RoundTrips, "redis_round_trips_total", "Round trips to Redis for reads; those of one request travel together. "+
		"With --redis-url.", nil)
}

// otherLabel is the label of all values beyond a limit. A namespace of that name shares its
// series.
const otherLabel = "other"

// maxRegistryLabels bounds the registries that have their own series. Only ClusterStores name
// them; all others count as "other".
const maxRegistryLabels = 50

// requests counts requests to registries.
type requests struct {
	count       *prometheus.CounterVec   // registry, stage, outcome
	byNamespace *prometheus.CounterVec   // namespace, outcome
	duration    *prometheus.HistogramVec // registry, stage
	wait        prometheus.Histogram
	namespace   func(verify.Namespace) string

	mu    sync.Mutex
	known map[string]struct{}
}

func newRequests(namespace func(verify.Namespace) string) *requests {
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	return &requests{known: map[string]struct{}{}, namespace: namespace,
		count: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "landwaiter_registry_requests_total",
			Help: "Requests to registries by the part of a verification that they were for, and outcome."},
			[]string{"registry", "stage", "outcome"}),
		byNamespace: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "landwaiter_registry_namespace_requests_total",
			Help: "Requests to registries by the namespace that they were made for, and outcome."}, []string{"namespace", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "landwaiter_registry_request_duration_seconds", Buckets: buckets,
			Help: "Time from sending a request to a registry to the header of its answer."}, []string{"registry", "stage"}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "landwaiter_registry_wait_duration_seconds", Buckets: buckets,
			Help: "Time that requests to registries waited for their turn: --limit registry-requests-per-second and registry-connections."})}
}

// observe counts a request.
func (r *requests) observe(x registry.Exchange) {
	host := r.label(x.Registry)
	r.count.WithLabelValues(host, string(x.Stage), string(x.Outcome)).Inc()
	r.byNamespace.WithLabelValues(r.namespace(x.Namespace), string(x.Outcome)).Inc()
	switch {
	case x.Duration > 0:
		r.duration.WithLabelValues(host, string(x.Stage)).Observe(x.Duration.Seconds())
		r.wait.Observe(x.Waited.Seconds())
	case x.Waited > 0:
		r.wait.Observe(x.Waited.Seconds())
	}
}

// forget drops the series of a namespace.
func (r *requests) forget(namespace verify.Namespace) {
	r.byNamespace.DeletePartialMatch(prometheus.Labels{"namespace": namespace.Label()})
}

// label returns host if it is one of the first that ClusterStores name.
func (r *requests) label(host string) string {
	if host == "" {
		return otherLabel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known[host]; !known {
		if len(r.known) >= maxRegistryLabels {
			return otherLabel
		}
		r.known[host] = struct{}{}
	}
	return host
}

// namespaces tracks which namespaces have their own series: existing ones, up to a limit.
// Requests for namespaces that do not exist use up no series.
type namespaces struct {
	exists func(verify.Namespace) bool

	mu    sync.RWMutex
	known map[verify.Namespace]struct{}
}

func newNamespaces(exists func(verify.Namespace) bool) *namespaces {
	return &namespaces{exists: exists, known: map[verify.Namespace]struct{}{}}
}

// label returns the value of the label namespace: "other" if the namespace does not exist, or
// exceeds the limit.
func (n *namespaces) label(namespace verify.Namespace) string {
	n.mu.RLock()
	_, known := n.known[namespace]
	n.mu.RUnlock()
	if known {
		return namespace.Label()
	}
	if !n.exists(namespace) {
		return otherLabel
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.known[namespace]; !known && len(n.known) >= maxNamespaceLabels {
		return otherLabel
	}
	n.known[namespace] = struct{}{}
	return namespace.Label()
}

// values returns the namespaces with their own series.
func (n *namespaces) values() []verify.Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Sorted(maps.Keys(n.known))
}

// drop frees the series of a namespace.
func (n *namespaces) drop(namespace verify.Namespace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, namespace)
}
