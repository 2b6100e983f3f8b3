//go:build e2e

package install

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var chart = root + "/charts/landwaiter"

// rendered has what render returned, by its arguments: many tests look at the same objects.
var rendered = map[string][]*unstructured.Unstructured{}

// render returns the objects of the chart with some arguments for helm.
func render(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	key := strings.Join(args, "\x00")
	if rendered[key] == nil {
		objects, err := suite.Chart(t.Context(), "landwaiter", args...)
		require.NoError(t, err)
		rendered[key] = objects
	}
	return rendered[key]
}

// build returns the objects that kustomize makes of a folder.
func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	return decoded(t, suite.Program{Path: suite.MustTool(t, suite.ChartTools, "kustomize")}.Must(t, "build", folder))
}

// decoded returns the objects of a text, in which no key may be there twice.
func decoded(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	return objects
}

func helm(t *testing.T) suite.Program {
	t.Helper()
	return suite.Program{Path: suite.MustTool(t, suite.ChartTools, "helm")}
}

// as converts the objects of a kind into their Go type, strictly.
func as[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		var typed T
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true), object.GetName())
		found = append(found, typed)
	}
	return found
}

func settings(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]string{"defaults": nil}
	for _, name := range files {
		all[name] = []string{"--values", name}
	}
	return all
}

func TestLints(t *testing.T) {
	for _, args := range settings(t) {
		helm(t).Must(t, append([]string{"lint", "--strict", chart}, args...)...)
	}
}

func TestEveryObjectIsValidForItsType(t *testing.T) {
	decoder := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, args := range settings(t) {
		names := map[string]bool{}
		for _, object := range render(t, args...) {
			id := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
			require.False(t, names[id], "%s: %s is there twice", name, id)
			names[id] = true
			if !clientgoscheme.Scheme.Recognizes(object.GroupVersionKind()) {
				continue // of Gatekeeper, Prometheus or ourselves: the e2e applies those
			}
			text, err := yaml.Marshal(object.Object)
			require.NoError(t, err)
			_, _, err = decoder.Decode(text, nil, nil)
			require.NoError(t, err, "%s: %s", name, id)
		}
	}
}

// provider is Landwaiter's own Deployment.
func provider(deployments []appsv1.Deployment) appsv1.Deployment {
	return deployments[slices.IndexFunc(deployments, func(d appsv1.Deployment) bool { return d.Name == "landwaiter" })]
}

func TestPodsAreRestricted(t *testing.T) {
	for name, args := range settings(t) {
		deployments := as[appsv1.Deployment](t, render(t, args...), "Deployment")
		require.NotEmpty(t, deployments, name)
		require.NotEmpty(t, provider(deployments).Spec.Template.Spec.TopologySpreadConstraints)
		var containers []corev1.Container
		for _, deployment := range deployments {
			spec := deployment.Spec.Template.Spec
			require.True(t, *spec.SecurityContext.RunAsNonRoot)
			require.Equal(t, "RuntimeDefault", string(spec.SecurityContext.SeccompProfile.Type))
			containers = append(containers, spec.Containers...)
		}
		require.NotNil(t, provider(deployments).Spec.Template.Spec.Containers[0].LivenessProbe)
		for _, container := range containers {
			require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
			require.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
			require.EqualValues(t, []string{"ALL"}, []string{string(container.SecurityContext.Capabilities.Drop[0])})
			require.NotNil(t, container.ReadinessProbe)
		}
	}
}

func TestEveryArgumentIsAFlagOfTheProgram(t *testing.T) {
	help := suite.Program{Path: suite.MustTool(t, suite.LandwaiterServer)}.Must(t, "serve", "--help")
	flags := regexp.MustCompile(`--[a-z-]+`).FindAllString(help, -1)
	for name, args := range settings(t) {
		for _, arg := range provider(as[appsv1.Deployment](t, render(t, args...), "Deployment")).Spec.Template.Spec.Containers[0].Args[1:] {
			flag, _, _ := strings.Cut(arg, "=")
			require.Contains(t, flags, flag, name)
		}
	}
}

func TestNoRoleReadsSecretsOfTheWholeCluster(t *testing.T) {
	for name, args := range settings(t) {
		objects := render(t, args...)
		bound := map[string]bool{}
		for _, binding := range as[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
			bound[binding.RoleRef.Name] = true
		}
		for _, role := range as[rbacv1.ClusterRole](t, objects, "ClusterRole") {
			for _, rule := range role.Rules {
				require.NotContains(t, rule.Verbs, "*", name)
				require.NotContains(t, rule.Resources, "*", name)
				if bound[role.Name] {
					require.NotContains(t, rule.Resources, "secrets", name)
					require.True(t, role.Name == "landwaiter-operator" || !slices.Contains(rule.Resources, "serviceaccounts"), name)
				}
				// the operator writes them in namespaces of Tenants
				require.True(t, !bound[role.Name] || role.Name == "landwaiter-operator" || !slices.Contains(rule.Resources, "configmaps"), name)
			}
			for label := range role.Labels {
				if role.Name == "landwaiter-report-reader" {
					require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{"openreports.io"}, Resources: []string{"reports"}, Verbs: []string{"get", "list", "watch"}}},
						role.Rules)
				} else if strings.HasPrefix(label, "rbac.authorization.k8s.io/") {
					require.Equal(t, "rbac.authorization.k8s.io/aggregate-to-admin", label)
					require.Equal(t, "landwaiter-rules-writer", role.Name)
				}
			}
		}
	}
}

// The permission of the reports to write is the only one that they add, besides that to read Events and
// what runs.
func TestReportsAddTheRightsThatTheyNeedAndNoOthers(t *testing.T) {
	rules := func(args ...string) (found []string) {
		for _, role := range as[rbacv1.ClusterRole](t, render(t, append(args, "--set", "personas.create=false")...), "ClusterRole") {
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						found = append(found, role.Name+" "+verb+" "+resource)
					}
				}
			}
		}
		return found
	}
	warm := rules("--set", "warmUp.enabled=true")
	var more []string
	for _, rule := range rules("--set", "reports.enabled=true") {
		if !slices.Contains(warm, rule) {
			more = append(more, strings.TrimPrefix(rule, "landwaiter "))
		}
	}
	require.Equal(t, []string{"get events", "list events", "watch events", "get reports", "list reports", "watch reports", "create reports", "update reports",
		"patch reports", "delete reports"}, more)
	require.Subset(t, rules("--set", "reports.enabled=true"), warm, "what runs is watched")
}

func TestTheDefinitionsOfReportsAreInstalledOnlyIfAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"by default":                    {nil, 0},
		"with reports":                  {[]string{"--set", "reports.enabled=true"}, 2},
		"with those of somebody else":   {[]string{"--set", "reports.enabled=true", "--set", "reports.installCRDs=false"}, 0},
		"without our own CRDs":          {[]string{"--set", "reports.enabled=true", "--set", "crds.install=false"}, 2},
		"asked for but without reports": {[]string{"--set", "reports.installCRDs=true"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for _, object := range render(t, c.args...) {
				if object.GetKind() == "CustomResourceDefinition" && strings.HasSuffix(object.GetName(), ".openreports.io") {
					require.Equal(t, "keep", object.GetAnnotations()["helm.sh/resource-policy"], "reports go with their definition")
					found++
				}
			}
			require.Equal(t, c.want, found)
		})
	}
}

func TestWorkloadsAreReadOnlyForTheWarmUp(t *testing.T) {
	for enabled, want := range map[string][]string{"false": nil, "true": {"cronjobs", "daemonsets", "deployments", "jobs", "pods", "statefulsets"}} {
		var found []string
		objects := render(t, "--set", "warmUp.enabled="+enabled, "--set", "personas.create=false")
		for _, role := range as[rbacv1.ClusterRole](t, objects, "ClusterRole") {
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if slices.Contains([]string{"cronjobs", "daemonsets", "deployments", "jobs", "pods", "statefulsets"}, resource) {
						require.Equal(t, []string{"get", "list", "watch"}, rule.Verbs)
						found = append(found, resource)
					}
				}
			}
		}
		slices.Sort(found)
		require.Equal(t, want, found)
		args := provider(as[appsv1.Deployment](t, objects, "Deployment")).Spec.Template.Spec.Containers[0].Args
		require.Equal(t, want != nil, slices.Contains(args, "--warm-up"))
	}
}

func TestExceptionsLastAsLongAsTheValuesSayAndBreakGlassIsOffUnlessAskedFor(t *testing.T) {
	args := func(sets ...string) []string {
		objects := render(t, sets...)
		return provider(as[appsv1.Deployment](t, objects, "Deployment")).Spec.Template.Spec.Containers[0].Args
	}
	require.NotContains(t, strings.Join(args(), " "), "break-glass")
	require.NotContains(t, strings.Join(args(), " "), "--max-exception")
	require.NotContains(t, strings.Join(args(), " "), "--max-delegation")
	set := args("--set", "exceptions.maxDuration=720h,exceptions.maxDelegation=2000h,breakGlass.enabled=true,breakGlass.maxDuration=4h,guardrails.enabled=true")
	require.Subset(t, set, []string{"--max-exception=720h", "--max-delegation=2000h", "--break-glass=4h"})
	require.Contains(t, args("--set", "breakGlass.enabled=true,guardrails.enabled=true"), "--break-glass=24h")
}

// The program makes the Provider objects, whoever issues its certificate: a change of owner would delete them.
func TestProvidersAreMadeByTheProgram(t *testing.T) {
	args := func(objects []*unstructured.Unstructured) []string {
		return provider(as[appsv1.Deployment](t, objects, "Deployment")).Spec.Template.Spec.Containers[0].Args
	}
	objects := func(args []string) []string {
		return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !strings.HasPrefix(arg, "--provider-object=") })
	}
	rotated := render(t, "--values", "testdata/everything.yaml")
	given := render(t, "--values", "testdata/everything.yaml", "--values", "testdata/given-certificate.yaml")
	require.Contains(t, args(rotated), "--timeout=verify=2500ms")
	require.Contains(t, args(rotated), "--timeout=mutate=800ms")
	require.Contains(t, args(rotated), "--rotate-certificates")
	require.NotContains(t, args(given), "--rotate-certificates")
	require.Contains(t, args(given), "--provider-ca=/etc/landwaiter/provider-ca/ca.crt")
	require.Len(t, objects(args(rotated)), 6)
	require.Equal(t, objects(args(rotated)), objects(args(given)))
	for _, rendered := range [][]*unstructured.Unstructured{rotated, given} {
		require.Empty(t, suite.Only(rendered, "Provider"))
		require.Contains(t, args(rendered), "--cluster-role=provider-suffix=-provider")
		var owners []string
		for _, role := range suite.Only(rendered, "ClusterRole") {
			if strings.HasSuffix(role.GetName(), "-provider") {
				owners = append(owners, role.GetName())
			}
		}
		require.Len(t, owners, 6, "Kubernetes would delete a Provider without its owner")
	}
	require.NotContains(t, args(render(t, "--set", "rbac.create=false")), "--cluster-role=provider-suffix=-provider", "there are none")
	require.Contains(t, args(render(t, "--set", "provider.url=https://landwaiter.example.com:8443")), "--provider-url=https://landwaiter.example.com:8443")
	none := render(t, "--set", "provider.create=false,tls.rotate=false,tls.secretName=given")
	require.Empty(t, objects(args(none)))
	require.NotContains(t, strings.Join(args(none), " "), "provider-")
}

func TestAnAddressThatNoCertificateCanHaveIsRefused(t *testing.T) {
	for value, ok := range map[string]bool{
		"https://127.0.0.1:8443": true, "https://[::1]:8443": true, "https://[fd00::1]": true, "https://landwaiter.example.com:8443": true,
		"https://landwaiter": true,
		"https://::1:8443":   false, "https://fd00::1": false, "https://[::1": false, "https://127.0.0.256:8443": false, "https://1.2.3:8443": false,
		"https://a_b:8443": false,
		"https://host:0":   false, "https://host:65536": false, "https://host/path": false, "https://user@host": false, "http://host": false, "host:8443": false,
	} {
		_, err := suite.Chart(t.Context(), "landwaiter", "--set-string", "provider.url="+value)
		if ok {
			require.NoError(t, err, value)
		} else {
			require.ErrorContains(t, err, "at '/provider/url'", value)
		}
	}
	for value, ok := range map[string]bool{
		"127.0.0.1": true, "::1": true, "fd00::a": true, "::ffff:10.0.0.1": true, "*.example.com": true, "host": true, "xn--bcher-kva.example": true,
		"3com.example": true,
		"[::1]":        false, "fe80::1%eth0": false, "host:8443": false, "https://host": false, "10.0.0.0/8": false, "1.2.3": false, "a b": false,
		"bücher.example": false,
		"-a":             false, "a..b": false,
	} {
		_, err := suite.Chart(t.Context(), "landwaiter", "--set-string", "tls.extraDNSNames[0]="+value)
		if ok {
			require.NoError(t, err, value)
		} else {
			require.ErrorContains(t, err, "at '/tls/extraDNSNames/0'", value)
		}
	}
}

func TestARoleForAProviderIsForNoOther(t *testing.T) {
	objects := render(t, "--values", "testdata/everything.yaml")
	found := 0
	for _, role := range as[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "providers") ||
				!slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) {
				continue
			}
			found++
			require.Equal(t, []string{strings.TrimSuffix(role.Name, "-provider")}, rule.ResourceNames)
		}
	}
	require.Equal(t, 6, found)
}

func TestCombinationsThatCannotWorkAreRefused(t *testing.T) {
	for message, sets := range map[string][]string{
		"clientCA: without secrets or files, any client could send requests":                             {"clientCA.secrets=null"},
		"clientCA.insecureNoClientAuth contradicts":                                                      {"clientCA.insecureNoClientAuth=true"},
		"tls.rotate is false, so tls.caBundle must be given":                                             {"tls.rotate=false"},
		"tls.rotate needs provider.create":                                                               {"provider.create=false"},
		"clientCA: gatekeeper-system/gatekeeper-webhook-server-cert is not in gatekeeper.namespace, opa": {"gatekeeper.namespace=opa"},
		"extraVolumes: provider-ca is there twice, or is a volume of the chart":                          {"extraVolumes[0].name=provider-ca"},
		"breakGlass.enabled needs guardrails.enabled":                                                    {"breakGlass.enabled=true"},
		"operator.enabled needs guardrails.enabled":                                                      {"operator.enabled=true"},
		"operator.mutation needs mutation.enabled": {"operator.enabled=true", "guardrails.enabled=true",
			"operator.mutation=true"},
		"operator.clusterRoles: cluster-admin in a namespace":         {"operator.clusterRoles={mine,cluster-admin}"},
		"at '/reconciler/pieces/0': value must be one of":             {"reconciler.pieces={everything}"},
		"at '/operator/clusterRoles/0': 'system:node' does not match": {"operator.clusterRoles={system:node}"},
		"mutation.enabled needs provider.create": {"provider.create=false", "tls.rotate=false",
			"mutation.enabled=true"},
		"redis.existingSecret.name is needed": {"redis.url=redis://h"},
		"each name a Redis: use one": {"redis.url=redis://h", "redis.install=true",
			"redis.existingSecret.name=s"},
		"tls.caBundle is for tls.rotate=false":                        {"tls.caBundle=-----BEGIN CERTIFICATE-----"},
		"additional properties 'replica' not allowed":                 {"replica=3"},
		"additional properties 'secretname' not allowed":              {"tls.secretname=x"},
		"at '/provider/verifyTimeoutSeconds': minimum: got 0, want 1": {"provider.verifyTimeoutSeconds=0"},
		"at '/log/level'":                 {"log.level=loud"},
		"at '/secretAccess/namespaces/0'": {"secretAccess.namespaces={Team_A}"},
	} {
		var args []string
		for _, set := range sets {
			args = append(args, "--set", set)
		}
		_, err := suite.Chart(t.Context(), "landwaiter", args...)
		require.ErrorContains(t, err, message, "%v", sets)
	}
}

func TestGuardrailsFromElsewhereAreEnoughForBreakGlassAndNotForTheOperator(t *testing.T) {
	_, err := suite.Chart(t.Context(), "landwaiter", "--set", "breakGlass.enabled=true,guardrails.external=true")
	require.NoError(t, err)
	_, err = suite.Chart(t.Context(), "landwaiter", "--set", "operator.enabled=true,guardrails.external=true")
	require.ErrorContains(t, err, "operator.enabled needs guardrails.enabled")
}

func TestGuardrailsNeedAKubernetesThatHasThem(t *testing.T) {
	_, err := suite.Chart(t.Context(), "landwaiter", "--kube-version", "1.29.15", "--set", "guardrails.enabled=true")
	require.ErrorContains(t, err, "guardrails.enabled needs Kubernetes 1.30")
	render(t, "--kube-version", "1.30.0", "--set", "guardrails.enabled=true")
	for _, object := range render(t) {
		require.NotContains(t, object.GetKind(), "ValidatingAdmissionPolicy", "they are off by default")
	}
}

// Every guardrail has its binding, and those for kustomize are the chart's.
func TestGuardrailsForKustomizeAreTheCharts(t *testing.T) {
	objects := build(t, root+"/config/guardrails")
	fromChart := map[string]map[string]any{}
	for _, object := range render(t, "--set", "guardrails.enabled=true") {
		if strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") {
			fromChart[object.GetKind()+" "+object.GetName()] = withoutOrigin(object)
		}
	}
	require.Len(t, objects, len(fromChart))
	for _, object := range objects {
		require.Equal(t, fromChart[object.GetKind()+" "+object.GetName()], withoutOrigin(object), "run make generate")
		require.Contains(t, fromChart, "ValidatingAdmissionPolicyBinding "+object.GetName())
	}
}

// everythingOn has each part of the chart.
func everythingOn(more ...string) []string {
	return append([]string{"--values", "testdata/everything.yaml", "--set",
		"guardrails.enabled=true,operator.enabled=true,redis.install=true,redis.existingSecret.urlKey="}, more...)
}

// OpenShift's SCC restricted-v2 refuses a pod that names a user outside of the range of its namespace.
func TestPodsNameNoUserIfTheValuesDoNot(t *testing.T) {
	objects := render(t,
		everythingOn("--set",
			"podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null,redis.podSecurityContext.runAsUser=null,redis.podSecurityContext.runAsGroup=null")...)
	deployments := as[appsv1.Deployment](t, objects, "Deployment")
	require.Len(t, deployments, 3)
	for _, d := range deployments {
		pod := d.Spec.Template.Spec
		require.True(t, *pod.SecurityContext.RunAsNonRoot, d.Name)
		require.Nil(t, pod.SecurityContext.RunAsUser, d.Name)
		require.Nil(t, pod.SecurityContext.RunAsGroup, d.Name)
		require.Nil(t, pod.Containers[0].SecurityContext.RunAsUser, d.Name)
	}
	for _, d := range as[appsv1.Deployment](t, render(t, everythingOn("--set", "securityContext.privileged=false")...), "Deployment") {
		if d.Name != "landwaiter-redis" {
			require.False(t, *d.Spec.Template.Spec.Containers[0].SecurityContext.Privileged, d.Name)
		}
	}
}

func TestTheCollectorsLimitFollowsTheMemoryLimit(t *testing.T) {
	limit := func(name string, sets ...string) string {
		for _, d := range as[appsv1.Deployment](t, render(t, append([]string{"--set", "guardrails.enabled=true,operator.enabled=true"}, sets...)...), "Deployment") {
			if d.Name != name {
				continue
			}
			for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
				if variable.Name == "GOMEMLIMIT" {
					return variable.Value
				}
			}
		}
		return ""
	}
	for memory, want := range map[string]string{"512Mi": "400MiB", "1Gi": "800MiB", "1.5Gi": "1200MiB", "1G": "745MiB", "524288k": "390MiB",
		"1073741824": "800MiB", "null": ""} {
		require.Equal(t, want, limit("landwaiter", "--set", "resources.limits.memory="+memory), memory)
		require.Equal(t, want, limit("landwaiter-operator", "--set", "operator.resources.limits.memory="+memory), memory)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte("resources: {limits: {memory: 1073741824}}\n"), 0o600))
	require.Equal(t, "800MiB", limit("landwaiter", "--values", file))
	require.Equal(t, "300MiB", limit("landwaiter", "--set", "garbageCollection.memoryLimit=300MiB"))
	_, err := suite.Chart(t.Context(), "landwaiter", "--set", "resources.limits.memory=1Zi")
	require.ErrorContains(t, err, "at '/resources/limits/memory'")
}

func TestTheOperatorIsScheduledAsTheServerIs(t *testing.T) {
	pods := map[string]corev1.PodSpec{}
	for _, d := range as[appsv1.Deployment](t, render(t, everythingOn()...), "Deployment") {
		pods[d.Name] = d.Spec.Template.Spec
		if d.Name != "landwaiter-redis" {
			spread := d.Spec.Template.Spec.TopologySpreadConstraints
			require.Len(t, spread, 1, d.Name)
			require.Equal(t, d.Spec.Selector, spread[0].LabelSelector)
		}
	}
	server, operator := pods["landwaiter"], pods["landwaiter-operator"]
	require.Equal(t, "system-cluster-critical", operator.PriorityClassName)
	require.NotEmpty(t, server.NodeSelector)
	require.Equal(t, server.NodeSelector, operator.NodeSelector)
	require.NotEmpty(t, server.Tolerations)
	require.Equal(t, server.Tolerations, operator.Tolerations)
	require.NotNil(t, server.Affinity)
	require.Equal(t, server.Affinity, operator.Affinity)
}

func TestCommonLabelsAreOnEveryObjectAndSelectNothing(t *testing.T) {
	objects := render(t, everythingOn("--set", "commonLabels.cost=platform")...)
	for _, object := range objects {
		require.Equal(t, "platform", object.GetLabels()["cost"], "%s %s", object.GetKind(), object.GetName())
		for _, path := range [][]string{{"spec", "selector"}, {"spec", "podSelector"}} {
			selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
			text, err := yaml.Marshal(selector)
			require.NoError(t, err)
			require.NotContains(t, string(text), "cost", "%s %s: it could not be changed later", object.GetKind(), object.GetName())
		}
	}
	for _, d := range as[appsv1.Deployment](t, objects, "Deployment") {
		require.Equal(t, "platform", d.Spec.Template.Labels["cost"], d.Name)
	}
}

func TestInsecureModeSaysSo(t *testing.T) {
	objects := render(t, "--values", "testdata/insecure.yaml")
	require.Contains(t, provider(as[appsv1.Deployment](t, objects, "Deployment")).Spec.Template.Spec.Containers[0].Args, "--insecure-no-client-auth")
}

// What the chart asks the cluster for must not differ between those that ask: that another release is
// there, and how many replicas an autoscaler has set.
func TestChartAsksTheClusterForTwoThingsAndMakesNothingUp(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chart, "templates/*"))
	require.NoError(t, err)
	for _, name := range files {
		asks := slices.Contains([]string{"NOTES.txt", "checks.yaml", "deployment.yaml"}, filepath.Base(name))
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, asks, regexp.MustCompile(`\blookup "`).Match(text), name)
		require.NotRegexp(t, `\b(rand\w+|genCA|genSelfSignedCert|genSignedCert|now|uuidv4)\b[^:]*}}`, string(text), name)
	}
	args := []string{"template", "landwaiter", chart, "--values", "testdata/everything.yaml"}
	require.Equal(t, helm(t).Must(t, args...), helm(t).Must(t, args...))
}

func TestKustomizeMakesWhatTheChartMakes(t *testing.T) {
	objects := build(t, root+"/config/default")
	id := func(o *unstructured.Unstructured) string {
		return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	fromChart := map[string]*unstructured.Unstructured{}
	for _, object := range render(t) {
		fromChart[id(object)] = object
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			continue
		}
		twin, ok := fromChart[id(object)]
		require.True(t, ok, "%s is not in the chart; run make generate", id(object))
		require.Equal(t, withoutOrigin(twin), withoutOrigin(object), "%s differs; run make generate", id(object))
		delete(fromChart, id(object))
	}
	require.Empty(t, slices.Collect(maps.Keys(fromChart)), "these are in the chart only; run make generate")
}

// withoutOrigin leaves out what says that helm made an object.
func withoutOrigin(o *unstructured.Unstructured) map[string]any {
	object := o.DeepCopy()
	object.SetLabels(nil)
	annotations := object.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	object.SetAnnotations(annotations)
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels")
	return object.Object
}
