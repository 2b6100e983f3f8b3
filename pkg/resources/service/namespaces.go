package service

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// namespaces says which namespaces have series of their own: those that exist, up to a
// limit. Whoever asks about namespaces that do not exist takes no place from one that does.
type namespaces struct {
	exists func(verify.Namespace) bool

	mu    sync.RWMutex
	known map[verify.Namespace]struct{}
}

func newNamespaces(exists func(verify.Namespace) bool) *namespaces {
	return &namespaces{exists: exists, known: map[verify.Namespace]struct{}{}}
}

// label returns the value of the label namespace: that of all others if the namespace does
// not exist, or is past the limit.
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

// values returns the namespaces with series of their own.
func (n *namespaces) values() []verify.Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Sorted(maps.Keys(n.known))
}

// drop makes room for another namespace.
func (n *namespaces) drop(namespace verify.Namespace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, namespace)
}

// tenantNamespaces is a collector that says which Tenant holds each namespace with series
// of its own, so that queries can add series up by Tenant.
type tenantNamespaces struct {
	namespaces *namespaces
	tenant     func(verify.Namespace) string
	desc       *prometheus.Desc
}

func newTenantNamespaces(namespaces *namespaces, tenant func(verify.Namespace) string) *tenantNamespaces {
	return &tenantNamespaces{namespaces: namespaces, tenant: tenant, desc: prometheus.NewDesc("landwaiter_tenant_namespace",
		"Is 1 for each namespace of a Tenant that has series of its own. It is for joins: multiply by it, on(namespace) group_left(tenant).", []string{"tenant", "namespace"}, nil)}
}

// Describe implements [prometheus.Collector].
func (t *tenantNamespaces) Describe(into chan<- *prometheus.Desc) { into <- t.desc }

// Collect implements [prometheus.Collector].
func (t *tenantNamespaces) Collect(into chan<- prometheus.Metric) {
	for _, namespace := range t.namespaces.values() {
		if tenant := t.tenant(namespace); tenant != "" {
			into <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, 1, tenant, namespace.Label())
		}
	}
}
