//go:build e2e

package admission

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// shows waits until the metrics of the replica that answers match all expressions.
func (w *world) shows(t *testing.T, expressions ...string) (metrics string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) (err error) {
		if metrics, err = stack.Get(ctx, w.Current().MetricsURL+"/metrics"); err != nil {
			return err
		}
		for _, expression := range expressions {
			if !regexp.MustCompile("(?m)^" + expression + "$").MatchString(metrics) {
				return fmt.Errorf("no metric matches %s", expression)
			}
		}
		return nil
	})
	return metrics
}

func TestAReplicaThatStartsHealthyHasNoErrorsInItsMetrics(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.restart(t)
	w.admitted(t, ns, w.signed)
	metrics := w.shows(t, `landwaiter_tls_reload_errors_total\{part="certificate"\} 0`, `landwaiter_tls_reload_errors_total\{part="client_ca"\} 0`,
		`landwaiter_provider_panics_total 0`, `landwaiter_namespaces [1-9][0-9]*`, `landwaiter_build_info\{.*\} 1`, `process_resident_memory_bytes .*`)
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	exported := regexp.MustCompile(`(?m)^# TYPE (landwaiter_\w+) `).FindAllStringSubmatch(metrics, -1)
	require.NotEmpty(t, exported)
	for _, name := range exported {
		require.Contains(t, string(page), "| `"+name[1]+"` |", "docs/reference/metrics.md does not have what a replica in a cluster exports")
	}
}

func TestAResourceThatIsNotReadyIsCountedForItsNamespaceUntilItIsCorrected(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, trustStore(ns, "keys", w.teamA))
	w.shows(t, `landwaiter_resources\{kind="TrustStore"\} [1-9][0-9]*`)
	w.apply(t, `{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {name: broken, namespace: `+ns+
		`}, spec: {type: PublicKeys, source: {inline: rubbish}}}`)
	series := `landwaiter_resources_not_ready\{kind="TrustStore",namespace="` + ns + `"\} `
	w.shows(t, series+"1")
	w.apply(t, trustStore(ns, "broken", w.teamA))
	suite.Eventually(t, func(ctx context.Context) error {
		metrics, err := stack.Get(ctx, w.Current().MetricsURL+"/metrics")
		if err == nil && regexp.MustCompile("(?m)^"+series).MatchString(metrics) {
			err = fmt.Errorf("%s still has a series", ns)
		}
		return err
	})
}
