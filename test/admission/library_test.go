//go:build e2e

package admission

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/suite"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// judged is what one template denies and admits through the API server.
type judged struct {
	parameters map[string]any
	match      map[string]any // instead of the namespace of the test
	denied     string
	reason     string
	admitted   string
	// also are further objects that are denied, with their reasons.
	also map[string]string
	// debugger is an ephemeral container that is denied; by its subresource, in the admitted pod.
	debugger *corev1.EphemeralContainer
}

func podOf(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: app, namespace: $NS}, spec: {" + spec + "}}"
}

func kustomization(spec string) string {
	return "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: app, namespace: $NS}, spec: {interval: 10m, path: ./, " +
		"prune: true, " + spec + "}}"
}

func release(spec string) string {
	return "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: app, namespace: $NS}, spec: {interval: 10m, " + spec + "}}"
}

func debugger(image string, security *corev1.SecurityContext) *corev1.EphemeralContainer {
	return &corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: image, SecurityContext: security}}
}

// byThemselves are the templates that decide at admission without Landwaiter.
func byThemselves() map[string]judged {
	yes, zero := true, int64(0)
	const container = "containers: [{name: app, image: registry.example.com/$NS/app:v1"
	const profiled = "seccompProfile: {type: RuntimeDefault}"
	secret := func(key string) string {
		return "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: app, namespace: $NS}, spec: {secretStoreRef: {kind: " +
			"ClusterSecretStore, name: vault}, data: [{secretKey: a, remoteRef: {key: " + key + "}}]}}"
	}
	source := func(url string) string {
		return "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: app, namespace: $NS}, spec: {interval: 1m, url: " + url + "}}"
	}
	return map[string]judged{
		"tenant-allowed-registries": {parameters: map[string]any{"prefixes": []any{"registry.example.com/live-tenant-allowed-registries/"}},
			denied: podOf("containers: [{name: app, image: registry.example.com/other/app:v1}]"), reason: "registry.example.com/other/app:v1",
			admitted: podOf(container + "}]"),
			debugger: debugger("registry.example.com/other/debug:v1", nil)},
		"no-privileged-containers": {denied: podOf(container + ", securityContext: {privileged: true}}]"), reason: "privileged", admitted: podOf(container + "}]"),
			debugger: debugger("debug", &corev1.SecurityContext{Privileged: &yes})},
		"container-allowed-ports": {parameters: map[string]any{"ports": []any{int64(8080)}},
			denied: podOf(container + ", ports: [{containerPort: 22}]}]"), reason: "22", admitted: podOf(container + ", ports: [{containerPort: 8080}]}]")},
		"allowed-users-and-groups": {parameters: map[string]any{"runAsUser": map[string]any{"rule": "MustRunAsNonRoot"}},
			denied: podOf(container + ", securityContext: {runAsUser: 0}}]"), reason: "app",
			admitted: podOf(container + ", securityContext: {runAsUser: 1000, runAsNonRoot: true}}]"),
			debugger: debugger("debug", &corev1.SecurityContext{RunAsUser: &zero})},
		"no-host-path-volumes": {denied: podOf(container + "}], volumes: [{name: etc, hostPath: {path: /etc}}]"), reason: "/etc",
			admitted: podOf(container + "}], volumes: [{name: etc, emptyDir: {}}]")},
		"seccomp-profile": {denied: podOf(container + "}]"), reason: "seccomp", admitted: podOf(container + ", securityContext: {" + profiled + "}}]"),
			debugger: debugger("debug", &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}})},
		"apparmor-profile": {denied: podOf(container + ", securityContext: {appArmorProfile: {type: Unconfined}}}]"), reason: "AppArmor",
			admitted: podOf(container + "}]"),
			debugger: debugger("debug", &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}})},
		"flux-service-account-required": {denied: kustomization("sourceRef: {kind: GitRepository, name: app}"), reason: "spec.serviceAccountName is empty",
			admitted: kustomization("serviceAccountName: iris-green, sourceRef: {kind: GitRepository, name: app}"), also: map[string]string{
				release("chartRef: {kind: " +
					"OCIRepository, name: app}"): "spec.serviceAccountName is empty",
				release("serviceAccountName: default, chartRef: {kind: OCIRepository, name: app}"): `"default" may ` +
					`not be used`,
				kustomization("serviceAccountName: iris-red, sourceRef: {kind: " +
					"GitRepository, name: app}"): "is not the account of tenant iris-green",
				kustomization("serviceAccountName: iris-green, kubeConfig: {secretRef: {name: other}}, sourceRef: {kind: GitRepository, name: app}"): "spec.kubeConfig",
			}},
		"flux-no-cross-namespace-refs": {denied: kustomization("sourceRef: {kind: GitRepository, name: app, namespace: flux-system}"),
			reason:   "spec.sourceRef names namespace",
			admitted: kustomization("sourceRef: {kind: GitRepository, name: app}, targetNamespace: live-member"), also: map[string]string{
				kustomization("sourceRef: {kind: GitRepository, name: app}, targetNamespace: kube-system"):                    `spec.targetNamespace is "kube-system"`,
				kustomization("sourceRef: {kind: GitRepository, name: app}, targetNamespace: live-other"):                     `spec.targetNamespace is "live-other"`,
				kustomization("sourceRef: {kind: GitRepository, name: app}, dependsOn: [{name: app, namespace: live-other}]"): "spec.dependsOn[0] names namespace",
				release("chartRef: {kind: OCIRepository, name: app, namespace: live-other}"):                                  "spec.chartRef names namespace",
				release("chartRef: {kind: OCIRepository, name: app}, storageNamespace: live-other"):                           "spec.storageNamespace",
				release("chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: app, namespace: live-other}}}"):   "spec.chart.spec.sourceRef names namespace",
			}},
		"flux-allowed-sources": {denied: source("https://github.com/example-evil/app"), reason: "is not below an allowed prefix",
			admitted:   source("https://github.com/example/app"),
			parameters: map[string]any{"gitPrefixes": []any{"https://github.com/example/"}}, also: map[string]string{
				source("https://github.com/example/../evil/app"):                  "a part that servers may read differently",
				source("https://github.com@evil.example.com/app"):                 "is not below an allowed prefix",
				source("http://github.com/example/app"):                           "is not below an allowed prefix",
				source("https://github.com/example/app, recurseSubmodules: true"): "spec.recurseSubmodules",
			}},
		"external-secret-tenant-keys": {denied: secret("iris-green-web-db"), reason: "belongs to tenant iris-green-web", admitted: secret("iris-green-db"),
			also: map[string]string{
				secret("iris-red-db"): "does not begin with iris-green-",
				strings.Replace(secret("x"), "data: [{secretKey: a, remoteRef: {key: x}}]", "dataFrom: [{extract: {key: iris-red-db}}]",
					1): "spec.dataFrom[0].extract.key",
				strings.Replace(secret("x"), "data: [{secretKey: a, remoteRef: {key: x}}]", "dataFrom: [{find: {path: iris-green-}}]",
					1): "spec.dataFrom[0].find",
				strings.Replace(secret("iris-red-db, }, sourceRef: {storeRef: {kind: ClusterSecretStore, name: vault}"), "kind: ClusterSecretStore, name: vault}, data",
					"kind: SecretStore, name: own}, data", 1): "does not begin with iris-green-",
			}},
		"protected-namespace-labels": {denied: "{apiVersion: v1, kind: Namespace, metadata: {name: live-labelled, labels: {landwaiter.dev/tenant: iris-red}}}",
			reason: "which only the platform may do",
			match:  map[string]any{}, parameters: map[string]any{"allowedGroups": []any{"platform"}},
			admitted: "{apiVersion: v1, kind: Namespace, metadata: {name: live-labelled, labels: {team: iris-red}}}"},
	}
}

// elsewhere are the templates that other tests here are about: those that ask Landwaiter, and
// the one that only speaks in audits.
func elsewhere() []string {
	return []string{"verified-images", "verified-artifacts", "namespace-needs-default-deny"}
}

func TestLibraryDeniesLive(t *testing.T) {
	l := withLibrary(t)
	l.apply(t, "live-member", namespaceOf("iris-green"))
	l.apply(t, "live-other", namespaceOf("iris-green-web"))
	l.apply(t, "", syncset)
	cases := byThemselves()
	folders, err := filepath.Glob(suite.Root + "/library/*/template.yaml")
	require.NoError(t, err)
	others := elsewhere()
	for _, path := range folders {
		folder := filepath.Base(filepath.Dir(path))
		c, found := cases[folder]
		if !found {
			require.Contains(t, others, folder, "a template without a live test")
			continue
		}
		t.Run(folder, func(t *testing.T) { l.show(t, folder, c) })
	}
}

const syncset = `{apiVersion: syncset.gatekeeper.sh/v1alpha1, kind: SyncSet, metadata: {name: live}, spec: {gvks: [{group: "", version: v1, kind: Namespace}]}}`

// namespaceOf is a namespace that violates no constraint, so that audits do not count it.
func namespaceOf(tenant string) string {
	return "{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {landwaiter.dev/tenant: " + tenant + "}}}\n---\n" +
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: default-deny, namespace: $NS}, spec: {podSelector: {}, policyTypes: " +
		"[Ingress, Egress]}}"
}

// show has a template deny and admit, and admit a deletion.
func (l *library) show(t *testing.T, folder string, c judged) {
	t.Helper()
	ns := "live-" + folder
	l.apply(t, ns, namespaceOf("iris-green"))
	match := c.match
	if match == nil {
		match = map[string]any{"namespaces": []any{ns}}
	}
	violating, fine := l.decode(t, ns, c.denied), l.decode(t, ns, c.admitted)
	l.enforced(t, suite.Root+"/library/"+folder+"/samples/constraint.yaml", ns, match, c.parameters)
	l.denied(t, ns, c.reason, func(ctx context.Context) error { return l.try(ctx, violating) })
	l.admitted(t, func(ctx context.Context) error { return l.try(ctx, fine) })
	for text, reason := range c.also {
		objects := l.decode(t, ns, text)
		l.denied(t, ns, reason, func(ctx context.Context) error { return l.try(ctx, objects) })
	}
	if c.debugger == nil {
		return
	}
	require.NoError(t, l.Client.Create(suite.Within(t), fine[0].DeepCopy()))
	running := &corev1.Pod{}
	require.NoError(t, l.Client.Get(suite.Within(t), client.ObjectKeyFromObject(fine[0]), running))
	running.Spec.EphemeralContainers = append(running.Spec.EphemeralContainers, *c.debugger)
	l.denied(t, ns, "debug", func(ctx context.Context) error {
		return l.Client.SubResource("ephemeralcontainers").Update(ctx, running.DeepCopy())
	})
	zero := int64(0)
	require.NoError(t, l.Client.Delete(suite.Within(t), running, &client.DeleteOptions{GracePeriodSeconds: &zero}))
}

func TestWhatWasThereBeforeTheConstraintCanBeDeleted(t *testing.T) {
	l := withLibrary(t)
	const ns = "live-before"
	l.apply(t, ns, namespaceOf("iris-green"))
	l.apply(t, ns, kustomization("sourceRef: {kind: GitRepository, name: app}"))
	object := l.decode(t, ns, kustomization("sourceRef: {kind: GitRepository, name: app}"))[0]
	get := func() { require.NoError(t, l.Client.Get(suite.Within(t), client.ObjectKeyFromObject(object), object)) }
	get()
	object.SetFinalizers([]string{"finalizers.fluxcd.io"})
	require.NoError(t, l.Client.Update(suite.Within(t), object))
	l.enforced(t, suite.Root+"/library/flux-service-account-required/samples/constraint.yaml", ns, map[string]any{"namespaces": []any{ns}}, nil)
	l.denied(t, ns, "spec.serviceAccountName is empty", func(ctx context.Context) error {
		changed := object.DeepCopy()
		changed.Object["spec"].(map[string]any)["path"] = "./other" //nolint:forcetypeassert // read above
		return l.Client.Update(ctx, changed, client.DryRunAll)
	})
	require.NoError(t, l.Client.Delete(suite.Within(t), object))
	get()
	require.NotNil(t, object.GetDeletionTimestamp())
	object.SetFinalizers(nil)
	require.NoError(t, l.Client.Update(suite.Within(t), object), "Flux removes its finalizer")
	require.Error(t, l.Client.Get(suite.Within(t), client.ObjectKeyFromObject(object), object.DeepCopy()))
}
