//go:build e2e

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// ownLabels are the labels that the chart sets itself.
var ownLabels = []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
	"app.kubernetes.io/component", "helm.sh/chart"}

// extraLabels are the values with labels.
var extraLabels = []string{"commonLabels", "podLabels", "dashboards.labels", "serviceMonitor.labels", "prometheusRule.labels"}

// monitored has every object that takes labels of its own.
func monitored(more ...string) []string {
	return everythingOn(append([]string{"--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true"}, more...)...)
}

// escaped is a key in an argument of --set.
func escaped(key string) string { return strings.ReplaceAll(key, ".", `\.`) }

func TestALabelOfTheChartIsRefusedByTheNameOfItsValue(t *testing.T) {
	for i, label := range append([]string{"landwaiter.dev/tenant", "rbac.authorization.k8s.io/aggregate-to-admin"}, ownLabels...) {
		value := extraLabels[i%len(extraLabels)]
		_, err := suite.Chart(t.Context(), "landwaiter", "--set-string", value+"."+escaped(label)+"=x")
		require.ErrorContains(t, err, value+": "+label+" is the chart's own label; remove it")
	}
}

func TestALabelThatSeveralValuesSetIsWrittenOnce(t *testing.T) {
	objects := render(t, monitored("--set-string", "commonLabels.team=common,commonLabels.grafana_dashboard=common,podLabels.team=pods,"+
		"dashboards.labels.team=dashboards,dashboards.labels.grafana_dashboard=yes,serviceMonitor.labels.team=monitor,prometheusRule.labels.team=rule")...)
	seen := map[string]string{}
	for _, object := range objects {
		seen[object.GetKind()+" "+object.GetName()] = object.GetLabels()["team"]
	}
	require.Equal(t, "dashboards", seen["ConfigMap landwaiter-dashboard"])
	require.Equal(t, "monitor", seen["ServiceMonitor landwaiter"])
	require.Equal(t, "rule", seen["PrometheusRule landwaiter"])
	require.Equal(t, "common", seen["Service landwaiter"])
	require.Equal(t, "yes", as[corev1.ConfigMap](t, objects, "ConfigMap")[0].Labels["grafana_dashboard"])
	for _, d := range as[appsv1.Deployment](t, objects, "Deployment") {
		want := map[string]string{"landwaiter": "pods", "landwaiter-operator": "pods", "landwaiter-redis": "common"}[d.Name]
		require.Equal(t, want, d.Spec.Template.Labels["team"], d.Name)
	}
	require.Equal(t, "1", as[corev1.ConfigMap](t, render(t, monitored()...), "ConfigMap")[0].Labels["grafana_dashboard"])
}

// changed copies the chart with another version and appVersion.
func changed(t *testing.T, version, appVersion string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "landwaiter")
	require.NoError(t, os.CopyFS(folder, os.DirFS(chart)))
	file := filepath.Join(folder, "Chart.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for key, value := range map[string]string{"version": version, "appVersion": appVersion} {
		text = regexp.MustCompile(`(?m)^`+key+`: .*$`).ReplaceAll(text, []byte(key+`: "`+value+`"`))
	}
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return folder
}

// With a Git source, Flux's helm-controller gives the chart a version for each commit.
func TestAVersionOfTheChartRestartsNoPod(t *testing.T) {
	args := monitored("--namespace", suite.System, "--set", "image.tag=v1")
	first, err := suite.Render(t.Context(), changed(t, "0.1.0+aaaaaaa", "0.1.0"), args...)
	require.NoError(t, err)
	second, err := suite.Render(t.Context(), changed(t, "0.2.0+bbbbbbb", "0.2.0"), args...)
	require.NoError(t, err)
	before, after := as[appsv1.Deployment](t, first, "Deployment"), as[appsv1.Deployment](t, second, "Deployment")
	require.Len(t, before, 3)
	for i := range before {
		require.NotEqual(t, before[i].Labels, after[i].Labels)
		require.Equal(t, before[i].Spec.Template, after[i].Spec.Template, before[i].Name)
	}
}

// requireValidNames requires names and labels that Kubernetes accepts, and selectors that find the pods.
func requireValidNames(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	require.NotEmpty(t, objects)
	for _, object := range objects {
		id := object.GetKind() + " " + object.GetName()
		switch object.GetKind() {
		case "Service":
			require.Empty(t, validation.IsDNS1035Label(object.GetName()), id)
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		default:
			require.Empty(t, validation.IsDNS1123Subdomain(object.GetName()), id)
		}
		for key, value := range object.GetLabels() {
			require.Empty(t, validation.IsQualifiedName(key), id)
			require.Empty(t, validation.IsValidLabelValue(value), "%s: %s", id, key)
		}
	}
	for _, d := range as[appsv1.Deployment](t, objects, "Deployment") {
		require.Subset(t, d.Spec.Template.Labels, d.Spec.Selector.MatchLabels)
		for key, value := range d.Spec.Template.Labels {
			require.Empty(t, validation.IsValidLabelValue(value), "%s: %s", d.Name, key)
		}
		require.Regexp(t, `^[a-z0-9./-]+(:[0-9]+/[a-z0-9./-]+)?(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})$`, d.Spec.Template.Spec.Containers[0].Image)
	}
}

func TestEveryVersionOfTheChartMakesValidLabelsAndTags(t *testing.T) {
	for _, version := range []string{"0.1.0+92d58e7aca7a", "0.1.0-" + strings.Repeat("a", 70),
		"0.1.0-" + strings.Repeat("a", 45) + "." + strings.Repeat("b", 90)} {
		objects, err := suite.Render(t.Context(), changed(t, version, version), monitored("--set", "image.digest=")...)
		require.NoError(t, err)
		requireValidNames(t, objects)
	}
}

func TestEveryNameOfAReleaseMakesValidNames(t *testing.T) {
	for release, want := range map[string]string{
		"my.release": "my-release-landwaiter", "1": "landwaiter-1", "1.landwaiter": "landwaiter-1-landwaiter", "landwaiter": "landwaiter",
		"true": "true-landwaiter", strings.Repeat("a", 39) + ".b": strings.Repeat("a", 39), strings.Repeat("a", 53): strings.Repeat("a", 40),
	} {
		text := helm(t).
			Must(t, append([]string{"template", release, chart, "--namespace", "1e3", "--set", "image.digest="}, monitored("--set", "fullnameOverride=")...)...)
		objects := decoded(t, text)
		requireValidNames(t, objects)
		for _, d := range as[appsv1.Deployment](t, objects, "Deployment") {
			require.Contains(t, []string{want, want + "-operator", want + "-redis"}, d.Name)
			require.Equal(t, release, d.Labels["app.kubernetes.io/instance"])
		}
	}
}

func TestNamesInValuesAreThoseThatKubernetesTakes(t *testing.T) {
	for _, set := range []string{"nameOverride=Landwaiter", "nameOverride=" + strings.Repeat("a", 64), "nameOverride=1", "nameOverride=a.b",
		"fullnameOverride=a_b",
		"fullnameOverride=1", "fullnameOverride=true", "fullnameOverride=" + strings.Repeat("a", 41)} {
		value, _, _ := strings.Cut(set, "=")
		_, err := suite.Chart(t.Context(), "landwaiter", "--set-string", set)
		require.ErrorContains(t, err, "at '/"+value+"'", set)
	}
}
