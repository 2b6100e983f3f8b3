package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// namespacesOf returns the values of the label namespace of a metric.
func namespacesOf(family *dto.MetricFamily) map[string]float64 {
	found := map[string]float64{}
	for _, m := range family.GetMetric() {
		found[labelOf(m, "namespace")] += m.GetCounter().GetValue()
	}
	return found
}

// Anyone who may ask Landwaiter may name any namespace, in keys and in paths.
func TestAFloodOfMadeUpNamespacesTakesNoSeriesFromRealOnes(t *testing.T) {
	metrics := freePort(t)
	s := startServe(t, "--metrics-address", metrics)
	const requests, each = 4, 500 // twice as many as have series of their own
	for i := range requests {
		var keys []string
		for j := range each {
			keys = append(keys, fmt.Sprintf("[made-up-%d-%d]NO/IMAGE", i, j))
		}
		_, err := s.client.Ask(t.Context(), gatekeeper.VerifyPath, keys...)
		require.NoError(t, err)
	}
	_, err := s.client.Ask(t.Context(), "/v1/namespaces/made-up/verify", "NO/IMAGE")
	require.NoError(t, err)
	s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "")
	var keys map[string]float64
	eventually := func(condition func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			keys = namespacesOf(scrape(t, metrics)["landwaiter_provider_images_total"])
			return condition()
		}, time.Minute, 10*time.Millisecond)
	}
	eventually(func() bool { return keys["team-a"] > 0 })
	require.Len(t, keys, 2)
	require.InDelta(t, requests*each+1, keys["other"], 0)

	require.NoError(t, os.Remove(filepath.Join(s.resources, "team-a.yaml")))
	eventually(func() bool { return len(keys) == 1 })
	families := scrape(t, metrics)
	for _, name := range []string{"landwaiter_provider_verdicts_total", "landwaiter_registry_namespace_requests_total",
		"landwaiter_provider_images_overloaded_total"} {
		require.NotContains(t, namespacesOf(families[name]), "team-a", name)
	}
}
