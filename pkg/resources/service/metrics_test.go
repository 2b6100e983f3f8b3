package service

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// registered returns a service without Redis, and its metrics.
func registered(t *testing.T) (*Service, *prometheus.Registry) {
	t.Helper()
	s, err := New(Options{}, AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	metrics := prometheus.NewRegistry()
	s.Register(metrics)
	return s, metrics
}

// broken returns a namespace with a trust store that cannot be used.
func broken(t *testing.T, o *resource.Objects, namespace string) {
	t.Helper()
	require.NoError(t, o.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, Spec: v1beta1.TrustStoreSpec{Type: "PublicKeys"}}))
}

func TestResourcesThatAreNotReadyAreCountedByKindAndNamespace(t *testing.T) {
	s, metrics := registered(t)
	require.Equal(t, 0, testutil.CollectAndCount(newResources(s.set, s.namespaces, time.Now), "landwaiter_resources"),
		"nothing is known before the first snapshot")
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP landwaiter_resources_loaded_timestamp_seconds When a change of resources last came into force, in Unix time; 0 before the first.
# TYPE landwaiter_resources_loaded_timestamp_seconds gauge
landwaiter_resources_loaded_timestamp_seconds 0
`), "landwaiter_resources_loaded_timestamp_seconds"))
	var o resource.Objects
	broken(t, &o, "team-a")
	require.NoError(t, o.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b"}},
		&v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "s"}, Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}}}))
	before := time.Now()
	s.Apply(t.Context(), o)
	require.WithinRange(t, s.set.Changed(), before, time.Now())
	var want strings.Builder
	want.WriteString("# HELP landwaiter_resources_not_ready Resources whose condition Ready is False: what depends on them is denied. Namespaces without any " +
		"have no series.\n# TYPE landwaiter_resources_not_ready gauge\n")
	for _, kind := range v1beta1.Kinds() {
		if !kind.Namespaced {
			fmt.Fprintf(&want, "landwaiter_resources_not_ready{kind=%q,namespace=\"-\"} 0\n", kind.Name)
		}
	}
	want.WriteString("landwaiter_resources_not_ready{kind=\"TrustStore\",namespace=\"team-a\"} 1\n# HELP landwaiter_namespaces Namespaces that resources are " +
		"compiled for.\n# TYPE landwaiter_namespaces gauge\nlandwaiter_namespaces 2\n")
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(want.String()), "landwaiter_resources_not_ready", "landwaiter_namespaces"))
	require.Equal(t, len(v1beta1.Kinds()), testutil.CollectAndCount(newResources(s.set, s.namespaces, time.Now), "landwaiter_resources"))
	s.Apply(t.Context(), resource.Objects{})
	require.NoError(t,
		testutil.GatherAndCompare(metrics,
			strings.NewReader("# HELP landwaiter_namespaces Namespaces that resources are compiled for.\n# TYPE landwaiter_namespaces gauge\nlandwaiter_namespaces 0\n"),
			"landwaiter_namespaces"))
}

// until returns a trust store with a certificate that ends at a moment.
func until(t *testing.T, namespace string, end time.Time) *v1beta1.TrustStore {
	t.Helper()
	authority, err := fixture.NewAuthorityWith("ca", fixture.CertificateOptions{NotBefore: end.Add(-time.Hour), NotAfter: end})
	require.NoError(t, err)
	return &v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ca-" + strconv.FormatInt(end.Unix(), 10)}, Spec: v1beta1.TrustStoreSpec{
		Type: v1beta1.TrustStoreTypeCertificates, Source: v1beta1.TrustSource{Inline: string(authority.CertificatePEM)}}}
}

func TestTheFirstEndOfTrustIsAMetricByKindAndNamespace(t *testing.T) {
	s, _ := registered(t)
	now := time.Unix(1_800_000_000, 0)
	var o resource.Objects
	shared := until(t, "", now.Add(time.Hour))
	require.NoError(t, o.Add(until(t, "team-a", now.Add(3*time.Hour)), until(t, "team-a", now.Add(2*time.Hour)),
		&v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "ca"}, Spec: shared.Spec},
		&v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "s"}, Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}}}))
	for _, name := range []string{"team-a", "team-b"} {
		require.NoError(t, o.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	s.Apply(t.Context(), o)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(newResources(s.set, s.namespaces, func() time.Time { return now }))
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP landwaiter_trust_expires_timestamp_seconds When the first certificate, CA, log, revocation list or TUF role of the resources of a kind ends, in Unix time. Nothing that a successor covers counts.
# TYPE landwaiter_trust_expires_timestamp_seconds gauge
landwaiter_trust_expires_timestamp_seconds{kind="ClusterTrustStore",namespace="-"} 1.8000036e+09
landwaiter_trust_expires_timestamp_seconds{kind="TrustStore",namespace="team-a"} 1.8000072e+09
`), "landwaiter_trust_expires_timestamp_seconds"))
}

func TestNamespacesPastTheLimitShareTheirFirstEnd(t *testing.T) {
	s, _ := registered(t)
	now := time.Unix(1_800_000_000, 0)
	var o resource.Objects
	late, early := until(t, "team", now.Add(48*time.Hour)), until(t, "team", now.Add(24*time.Hour))
	for i := range maxNamespaceLabels + 5 {
		store := late.DeepCopy()
		if i == maxNamespaceLabels+2 {
			store = early.DeepCopy()
		}
		store.Namespace = fmt.Sprintf("team-%04d", i)
		require.NoError(t, o.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: store.Namespace}}, store))
	}
	s.Apply(t.Context(), o)
	r := newResources(s.set, s.namespaces, func() time.Time { return now })
	require.Equal(t, maxNamespaceLabels, testutil.CollectAndCount(r, "landwaiter_trust_expires_timestamp_seconds"), "the cluster has one")
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(r)
	families, err := metrics.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "landwaiter_trust_expires_timestamp_seconds" && m.GetLabel()[1].GetValue() == "other" {
				require.InDelta(t, now.Add(24*time.Hour).Unix(), m.GetGauge().GetValue(), 0)
				return
			}
		}
	}
	require.Fail(t, "there is no series of the others")
}

func TestNamespacesPastTheLimitHaveNoSeriesOfTheirOwn(t *testing.T) {
	s, metrics := registered(t)
	var o resource.Objects
	for i := range maxNamespaceLabels + 5 {
		broken(t, &o, fmt.Sprintf("team-%04d", i))
	}
	s.Apply(t.Context(), o)
	families, err := metrics.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "landwaiter_resources_not_ready" && m.GetLabel()[0].GetValue() == "TrustStore" {
				values[m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	require.Len(t, values, maxNamespaceLabels, "the cluster has one")
	require.InDelta(t, 6, values["other"], 0)
}

func TestOnlySoManyRegistriesHaveSeriesOfTheirOwn(t *testing.T) {
	s, _ := registered(t)
	for i := range 10 * maxRegistryLabels {
		s.requests.observe(registry.Exchange{Registry: fmt.Sprintf("r%d.example.com", i), Stage: registry.StageList, Outcome: registry.OutcomeOK,
			Duration: time.Second})
		s.requests.observe(registry.Exchange{Stage: registry.StageList, Outcome: registry.OutcomeOK, Duration: time.Second})
	}
	require.Equal(t, maxRegistryLabels+1, testutil.CollectAndCount(s.requests.count))
	require.Equal(t, maxRegistryLabels+1, testutil.CollectAndCount(s.requests.duration))
	require.InDelta(t, 9*maxRegistryLabels+10*maxRegistryLabels, testutil.ToFloat64(s.requests.count.WithLabelValues("other", "list", "ok")), 0)
}

func TestAVerificationIsSeenInTheMetrics(t *testing.T) {
	dir := t.TempDir()
	e, err := example.Start(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Registry.Close()) })
	s, _, err := Load(t.Context(), dir, Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	metrics := prometheus.NewRegistry()
	s.Register(metrics)
	ref, err := image.Parse(e.Registry.Host() + "/shared/app:v1")
	require.NoError(t, err)
	for range 2 {
		require.True(t, s.Verify(t.Context(), "team-a", ref).Decided())
	}
	host := e.Registry.Host()
	require.InDelta(t, 1, testutil.ToFloat64(s.requests.count.WithLabelValues(host, "resolve", "ok")), 0)
	require.Positive(t, testutil.ToFloat64(s.requests.count.WithLabelValues(host, "list", "ok")))
	found, err := testutil.GatherAndCount(metrics, "landwaiter_redis_commands_total")
	require.NoError(t, err)
	require.Zero(t, found, "without a Redis there are no metrics about it")
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP landwaiter_cache_lookups_total Lookups in the memory of this replica, by kind of entry and outcome.
# TYPE landwaiter_cache_lookups_total counter
landwaiter_cache_lookups_total{kind="evidence",outcome="hit"} 0
landwaiter_cache_lookups_total{kind="evidence",outcome="miss"} 1
landwaiter_cache_lookups_total{kind="tag",outcome="hit"} 1
landwaiter_cache_lookups_total{kind="tag",outcome="miss"} 1
landwaiter_cache_lookups_total{kind="verdict",outcome="hit"} 1
landwaiter_cache_lookups_total{kind="verdict",outcome="miss"} 1
`), "landwaiter_cache_lookups_total"))
}
