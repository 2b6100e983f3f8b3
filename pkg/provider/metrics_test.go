package provider

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Prometheus sees no increase in a counter whose first value is 1.
func TestCountersOfRequestsAreExportedBeforeTheFirst(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	require.Equal(t, len(endpointNames())*len(requestOutcomes()), testutil.CollectAndCount(h.metrics.requests))
	for _, path := range []string{"/v1/verify", "/v1/mutate", "/v1/namespaces/team-a/verify", "/v1/namespaces/team-a/mutate",
		"/ratify/gatekeeper/v1/verify", "/ratify/gatekeeper/v1/mutate"} {
		require.Contains(t, endpointNames(), endpointOf(t, path).name)
	}
	ask(t, h, "/v1/verify", "[team-a]r.example.com/a")
	require.Equal(t, 1, testutil.CollectAndCount(h.metrics.imagesOverloaded), "with the first image of a namespace")
	h.metrics.forget("team-a")
	require.Equal(t, 0, testutil.CollectAndCount(h.metrics.imagesOverloaded))
	require.Equal(t, 0, testutil.CollectAndCount(h.metrics.keys))
}

func TestNoMoreThanAFewScrapesAreAnsweredAtATime(t *testing.T) {
	held, release := make(chan struct{}, maxScrapes), make(chan struct{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow"}, func() float64 {
		held <- struct{}{}
		<-release
		return 0
	}))
	w := serve(t, byRepository, func(o *Options) { o.Metrics = registry })
	url := "http://" + w.server.MetricsAddress() + "/metrics"
	codes := make(chan int, maxScrapes)
	for range maxScrapes {
		go func() {
			code, _ := get(t, url)
			codes <- code
		}()
	}
	for range maxScrapes {
		<-held
	}
	code, _ := get(t, url)
	require.Equal(t, http.StatusServiceUnavailable, code)
	close(release)
	for range maxScrapes {
		require.Equal(t, http.StatusOK, <-codes)
	}
}

func TestMetricsAreServedAsOpenMetricsToThoseThatAsk(t *testing.T) {
	w := serve(t, byRepository, nil)
	w.server.handler.metrics.Observe(context.Background(), Observation{Endpoint: "verify", Outcome: RequestAnswered,
		Keys: []KeyObservation{{Namespace: verify.Namespace("team-a"), Outcome: KeyAllowed}}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.server.MetricsAddress()+"/metrics", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Contains(t, response.Header.Get("Content-Type"), "application/openmetrics-text")
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "# TYPE landwaiter_provider_keys counter\n")
	require.Contains(t, string(body), "\n# EOF\n")
}

func TestSeriesOfNamespacesCanBeJoinedWithTheirTenants(t *testing.T) {
	namespaces := labels{limit: 3}
	for _, namespace := range []string{"iris-web", "team-a", "iris-api", "iris-past-the-limit"} {
		namespaces.capped(namespace)
	}
	tenants := newTenantNamespaces(&namespaces, func(namespace verify.Namespace) string {
		if strings.HasPrefix(string(namespace), "iris-") {
			return "iris"
		}
		return ""
	})
	const help = "# HELP landwaiter_tenant_namespace Is 1 for each namespace of a Tenant that has series of its own. It is for joins: multiply by it, on(namespace) group_left(tenant).\n# TYPE landwaiter_tenant_namespace gauge\n"
	require.NoError(t, testutil.CollectAndCompare(tenants, strings.NewReader(help+
		"landwaiter_tenant_namespace{namespace=\"iris-api\",tenant=\"iris\"} 1\nlandwaiter_tenant_namespace{namespace=\"iris-web\",tenant=\"iris\"} 1\n")))
	namespaces.drop("iris-api")
	require.Equal(t, 1, testutil.CollectAndCount(tenants), "a namespace that is gone has no series")
}
