//go:build e2e

package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// readers returns who may reach the metrics port, and whether anybody may.
func readers(t *testing.T, args ...string) (from []networkingv1.NetworkPolicyPeer, open bool) {
	t.Helper()
	policies := as[networkingv1.NetworkPolicy](t, render(t, args...), "NetworkPolicy")
	for _, policy := range policies {
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				if port.Port.String() == "metrics" {
					require.NotEmpty(t, rule.From, "without peers it would be open to the internet")
					from, open = append(from, rule.From...), true
				}
			}
		}
	}
	return from, open
}

func TestTheNetworkPolicyLetsThroughTheScrapesThatTheChartAsksFor(t *testing.T) {
	anyPod := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	named := []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}}}
	monitor, from := "serviceMonitor.enabled=true", `networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=monitoring`
	for name, c := range map[string]struct {
		sets []string
		want []networkingv1.NetworkPolicyPeer
	}{
		"defaults":                                     {nil, nil},
		"a ServiceMonitor alone":                       {[]string{monitor}, anyPod},
		"a ServiceMonitor and peers":                   {[]string{monitor, from}, named},
		"peers alone, for Prometheus without operator": {[]string{from}, named},
		"rules and dashboards scrape nothing":          {[]string{"prometheusRule.enabled=true", "dashboards.enabled=true"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			for _, set := range c.sets {
				args = append(args, "--set", set)
			}
			got, open := readers(t, args...)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want != nil, open)
		})
	}
	require.Empty(t, as[networkingv1.NetworkPolicy](t, render(t, "--set", monitor, "--set", "networkPolicy.enabled=false"), "NetworkPolicy"))
}

// one returns the only object of a kind.
func one(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	require.Len(t, found, 1, kind)
	return found[0]
}

func TestTheServiceMonitorKeepsTheLabelsOfTheMetrics(t *testing.T) {
	objects := render(t, "--set", "serviceMonitor.enabled=true")
	monitor := one(t, objects, "ServiceMonitor")
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	require.NoError(t, err)
	require.Len(t, endpoints, 1)
	endpoint := endpoints[0].(map[string]any)
	require.Equal(t, true, endpoint["honorLabels"], "the operator adds a label namespace of its own")
	selector, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	require.NoError(t, err)
	selected := 0
	for _, service := range as[corev1.Service](t, objects, "Service") {
		if matches(selector, service.Labels) {
			selected++
			require.Equal(t, endpoint["port"], service.Spec.Ports[0].Name)
		}
	}
	require.Equal(t, 1, selected)
}

func matches(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func TestThePrometheusRuleIsTheFileOfRules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "files", "rules.yaml"))
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, yaml.Unmarshal(text, &want))
	rule := one(t, render(t, "--set", "prometheusRule.enabled=true", "--set", "prometheusRule.labels.release=prometheus"), "PrometheusRule")
	got, err := json.Marshal(rule.Object["spec"])
	require.NoError(t, err)
	expected, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(expected), string(got))
	require.Equal(t, "prometheus", rule.GetLabels()["release"])
}

func TestTheDashboardIsTheFileAndGrafanasSidecarFindsIt(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "files", "dashboard.json"))
	require.NoError(t, err)
	var found []corev1.ConfigMap
	for _, c := range as[corev1.ConfigMap](t, render(t, "--set", "dashboards.enabled=true"), "ConfigMap") {
		if c.Labels["grafana_dashboard"] == "1" {
			found = append(found, c)
		}
	}
	require.Len(t, found, 1)
	require.JSONEq(t, string(text), found[0].Data["landwaiter.json"])
	require.Empty(t, as[corev1.ConfigMap](t, render(t), "ConfigMap"))
}
