package provider

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// tenantNamespaces is a collector that says which Tenant holds each namespace with series
// of its own, so that queries can add series up by Tenant.
type tenantNamespaces struct {
	namespaces *labels
	tenant     func(verify.Namespace) string
	desc       *prometheus.Desc
}

func newTenantNamespaces(namespaces *labels, tenant func(verify.Namespace) string) *tenantNamespaces {
	return &tenantNamespaces{namespaces: namespaces, tenant: tenant, desc: prometheus.NewDesc("landwaiter_tenant_namespace",
		"Is 1 for each namespace of a Tenant that has series of its own. It is for joins: multiply by it, on(namespace) group_left(tenant).", []string{"tenant", "namespace"}, nil)}
}

// Describe implements [prometheus.Collector].
func (t *tenantNamespaces) Describe(into chan<- *prometheus.Desc) { into <- t.desc }

// Collect implements [prometheus.Collector].
func (t *tenantNamespaces) Collect(into chan<- prometheus.Metric) {
	for _, namespace := range t.namespaces.values() {
		if tenant := t.tenant(verify.Namespace(namespace)); tenant != "" {
			into <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, 1, tenant, namespace)
		}
	}
}
