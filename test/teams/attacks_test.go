//go:build e2e || nightly

package teams

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func attacksOnLabels() []attack {
	const rule, theirs = "tenant-labels", `{"metadata":{"labels":{"landwaiter.dev/tenant":"iris-green"}}}`
	return []attack{
		{"relabel a namespace to another team", red(), rule, "", "landwaiter.dev/tenant", change("Namespace", "", "iris-red-web", theirs)},
		{"relabel it by its status", red(), rule, "", "landwaiter.dev/tenant", changeBelow("status", "Namespace", "", "iris-red-web", theirs)},
		{"relabel it by its finalizers", red(), rule, "", "landwaiter.dev/tenant", finalize("iris-red-web", "labels", "landwaiter.dev/tenant")},
		{"take the label off", red(), rule, "", "landwaiter.dev/tenant", change("Namespace", "", "iris-red-web", label("landwaiter.dev/tenant", "null"))},
		{"change Flux's label", red(), rule, "", "toolkit.fluxcd.io/tenant",
			change("Namespace", "", "iris-red-web", label("toolkit.fluxcd.io/tenant", `"iris-green"`))},
		{"set Gatekeeper's ignore label", red(), rule, "", "admission.gatekeeper.sh/ignore",
			change("Namespace", "", "iris-red-web", label("admission.gatekeeper.sh/ignore", `"yes"`))},
		{"set it without a value", red(), rule, "", "admission.gatekeeper.sh/ignore",
			change("Namespace", "", "iris-red-web", label("admission.gatekeeper.sh/ignore", `""`))},
		{"lower pod security", red(), rule, "", "pod-security.kubernetes.io/enforce",
			change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"take pod security off", red(), rule, "", "pod-security.kubernetes.io/enforce",
			change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce", "null"))},
		{"pin pod security to an old version", red(), rule, "", "enforce-version",
			change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce-version", `"v1.0"`))},
		{"let pods into the home namespace", red(), rule, "", "landwaiter.dev/home-namespace",
			change("Namespace", "", "iris-red", label("landwaiter.dev/home-namespace", "null"))},
		{"have an adopted namespace deleted with the Tenant", red(), rule, "", "landwaiter.dev/created",
			change("Namespace", "", "iris-red-web", `{"metadata":{"annotations":{"landwaiter.dev/created":"true"}}}`)},
		{"break the glass", red(), rule, "", "landwaiter.dev/break-glass-until", change("Namespace", "", "iris-red-web", note("until"))},
		{"prepare to break it", red(), rule, "", "landwaiter.dev/break-glass-reason", change("Namespace", "", "iris-red-web", note("reason"))},
		{"have it begin earlier", red(), rule, "", "landwaiter.dev/break-glass-from", change("Namespace", "", "iris-red-web", note("from"))},
		{"pass mandatory policies with it", red(), rule, "", "landwaiter.dev/break-glass-override-mandatory",
			change("Namespace", "", "iris-red-web", note("override-mandatory"))},
		{"break it by the status", red(), rule, "", "landwaiter.dev/break-glass-until", changeBelow("status", "Namespace", "", "iris-red-web", note("until"))},
		{"break it by the finalizers", red(), rule, "", "landwaiter.dev/break-glass-until",
			finalize("iris-red-web", "annotations", "landwaiter.dev/break-glass-until")},
		{"make a namespace with broken glass", spawner(), rule, "", "landwaiter.dev/break-glass-until",
			create("{apiVersion: v1, kind: Namespace, metadata: {name: free, annotations: {landwaiter.dev/break-glass-until: x}}}")},
		{"make a namespace of a Tenant to come", spawner(), rule, "", "landwaiter.dev/tenant",
			create("{apiVersion: v1, kind: Namespace, metadata: {name: free, labels: {landwaiter.dev/tenant: to-come}}}")},
		{"make one that Gatekeeper ignores", spawner(), rule, "", "admission.gatekeeper.sh/ignore",
			create("{apiVersion: v1, kind: Namespace, metadata: {name: free, labels: {admission.gatekeeper.sh/ignore: x}}}")},
		{"change a namespace of Kubernetes", green(), rule, "", "only namespaces of the Tenant",
			change("Namespace", "", "kube-system", label("pod-security.kubernetes.io/enforce", `"restricted"`))},
		{"delete a namespace of nobody with a permission to make namespaces that was left over", stray(), rule, "", "only namespaces of the Tenant",
			remove("Namespace", "", "payments")},
		{"change it", stray(), rule, "", "only namespaces of the Tenant", change("Namespace", "", "payments", label("x", `"y"`))},
		{"make a namespace of nobody", stray(), rule, "", "only namespaces of the Tenant", create(namespace, "free", "")},
		{"make a tenant namespace without pod security", green(), rule, "", "pod-security.kubernetes.io",
			create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-new, labels: {landwaiter.dev/tenant: iris-green, " +
				"pod-security.kubernetes.io/enforce: privileged}}}")},
	}
}

func attacksOnPlatformObjects() []attack {
	const rule, says = "platform-objects", "belongs to the platform"
	const allowAll = `{"spec":{"egress":[{}],"ingress":[{}]}}`
	return []attack{
		{"delete the default-deny as admin", greenAdmin(), rule, "", says, remove("NetworkPolicy", "iris-green-web", "default-deny")},
		{"delete it as the Tenant's account", green(), rule, "", says, remove("NetworkPolicy", "iris-green-web", "default-deny")},
		{"open it", greenAdmin(), rule, "", says, change("NetworkPolicy", "iris-green-web", "default-deny", allowAll)},
		{"open it as a developer", greenDev(), rule, "", says, change("NetworkPolicy", "iris-green-web", "default-deny", allowAll)},
		{"take its label off", greenAdmin(), rule, "", says, change("NetworkPolicy", "iris-green-web", "default-deny", label("landwaiter.dev/owner", "null"))},
		{"give it an owner that can be deleted", greenAdmin(), rule, "", says, change("NetworkPolicy", "iris-green-web", "default-deny",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)},
		{"delete all network policies", greenAdmin(), rule, "", says, func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, named("NetworkPolicy", "iris-green-web", ""), client.InNamespace("iris-green-web"), client.DryRunAll)
		}},
		{"raise the quota", red(), rule, "", says, change("ResourceQuota", "iris-red-web", "tenant", `{"spec":{"hard":{"pods":"5000"}}}`)},
		{"take the quota's label off by its status", red(), rule, "", says,
			changeBelow("status", "ResourceQuota", "iris-red-web", "tenant", label("landwaiter.dev/owner", "null"))},
		{"take the permissions of the team away", redAdmin(), rule, "", says, remove("RoleBinding", "iris-red-web", "iris-red-reconciler")},
		{"delete the account in the home namespace", greenAdmin(), rule, "", says, remove("ServiceAccount", "iris-green", "iris-green")},
		{"change what the team is told", greenAdmin(), rule, "", says, change("ConfigMap", "iris-green", "landwaiter-tenant", `{"data":{"tenant":"x"}}`)},
		{"give the Kustomization another account", greenAdmin(), "platform-objects", "", says,
			change("Kustomization", "iris-green", "iris-green", `{"spec":{"prune":false}}`)},
		{"keep the platform from the Kustomization", greenAdmin(), rule, "", says,
			change("Kustomization", "iris-green", "iris-green", `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`)},
		{"keep the permissions of the team by a finalizer", greenAdmin(), rule, "", says,
			change("Kustomization", "iris-green", "iris-green", `{"metadata":{"finalizers":["example.com/stay"]}}`)},
		{"pass for the platform", greenAdmin(), rule, "", says,
			create("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: iris-green-web, name: x, labels: {landwaiter.dev/owner: platform}}}")},
		{"pass for the platform where no Tenant is", persona{"peter", nil}, rule, "", says,
			create("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: payments, name: x, labels: {landwaiter.dev/owner: platform}}, data: {x: x}}")},
	}
}

func attacksOnHomes() []attack {
	const kustomization = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: iris-green, name: x}, spec: {path: ./%s}}"
	const release = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: iris-green, name: x}, spec: {interval: 1m%s}}"
	const rule, says, decrypts = "home-accounts", "set spec.serviceAccountName to iris-green", "or set spec.decryption.serviceAccountName to iris-green"
	return []attack{
		{"run a pod in the home namespace", greenAdmin(), "home-workloads", "", "keeps no workloads", create("%s", pod("iris-green"))},
		{"run one as the account", green(), "home-workloads", "", "keeps no workloads", create("%s", pod("iris-green"))},
		{"a Kustomization with Flux's account", greenAdmin(), rule, "", says, create(kustomization, ", serviceAccountName: kustomize-controller")},
		{"a Kustomization without an account", greenAdmin(), rule, "", says, create(kustomization, "")},
		{"a Kustomization for another cluster", greenAdmin(), rule, "", says,
			create(kustomization, ", serviceAccountName: iris-green, kubeConfig: {secretRef: {name: x}}")},
		{"a Kustomization that decrypts with the identity of Flux", green(), rule, "", decrypts,
			create(kustomization, ", serviceAccountName: iris-green, decryption: {provider: sops}")},
		{"one that decrypts with another account", green(), rule, "", decrypts,
			create(kustomization, ", serviceAccountName: iris-green, decryption: {provider: sops, serviceAccountName: kustomize-controller}")},
		{"a HelmRelease without an account", green(), rule, "", says, create(release, "")},
		{"a HelmRelease with the default account", green(), rule, "", says, create(release, ", serviceAccountName: default")},
	}
}

func attacksOnNames() []attack {
	const rule, deletion, labels = "namespace-names", "namespace-deletion", "tenant-labels"
	return []attack{
		{"take a namespace by prefix", spawner(), rule, "", "that begin with iris-green- belong to Tenant iris-green", create(namespace, "iris-green-evil", "")},
		{"let the API server choose the rest of the name", spawner(), rule, "", "that begin with iris-green-",
			create("{apiVersion: v1, kind: Namespace, metadata: {generateName: iris-green-}}")},
		{"take a name that a Tenant lists", spawner(), rule, "", "the name green-shop belongs to", create(namespace, "green-shop", "")},
		{"make a namespace outside of the prefix", green(), rule, "", "Tenant iris-green", create(namespace, "payments2", "landwaiter.dev/tenant: iris-green")},
		{"make a namespace of another team", green(), rule, "", "iris-", create(namespace, "iris-green-x", "landwaiter.dev/tenant: iris-red")},
		{"make a tenant namespace that nobody guards", green(), rule, labels, "set the label landwaiter.dev/tenant", create(namespace, "iris-green-x", "")},
		{"name two teams", green(), rule, "", "name no other Tenant",
			create(namespace, "iris-green-x", "landwaiter.dev/tenant: iris-green, toolkit.fluxcd.io/tenant: iris-red")},
		{"change a namespace of nobody", green(), rule, labels, "only namespaces of the Tenant", change("Namespace", "", "payments", label("x", `"y"`))},
		{"lower pod security before anybody guards it", green(), rule, labels, "only namespaces of the Tenant",
			change("Namespace", "", "iris-green-old", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"delete the own home namespace", red(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-red")},
		{"delete a tenant namespace", red(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-red-web")},
		{"delete another team's", green(), deletion, "", "Tenant iris-", remove("Namespace", "", "iris-red-web")},
		{"delete a namespace of nobody", green(), deletion, labels, "only the namespaces that it may make", remove("Namespace", "", "payments")},
		{"change a namespace that is older than its Tenant", green(), rule, labels, "only namespaces of the Tenant",
			change("Namespace", "", "iris-green-old", label("x", `"y"`))},
		{"change a namespace in the range of the prefix that another team has", green(), rule, "", "account",
			change("Namespace", "", "iris-green-lent", label("x", `"y"`))},
		{"delete a namespace that is older than its Tenant", green(), deletion, labels, "only the platform may delete it", remove("Namespace", "", "iris-green-old")},
		{"change another team's with a permission that was left over", stray(), rule, "", "only its account",
			change("Namespace", "", "iris-red-web", label("x", `"y"`))},
		{"change its status", stray(), rule, "", "only its account", changeBelow("status", "Namespace", "", "iris-red-web", label("x", `"y"`))},
		{"finalize it", stray(), rule, "", "only its account", finalize("iris-red-web", "labels", "x")},
		{"delete another team's with it", stray(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-red-web")},
		{"delete one that begins with the prefix", spawner(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-green-old")},
	}
}

func attacks() []attack {
	return slices.Concat(attacksOnLabels(), attacksOnPlatformObjects(), attacksOnHomes(), attacksOnNames(), attacksAsOperator(), attacksOnTenantsAsOperator(),
		attacksAsLandwaiter(), attacksOnPieces(), attacksOnSecrets())
}

// allRefuse waits until every guardrail is in force.
func (w *arena) allRefuse(t *testing.T) {
	t.Helper()
	for _, a := range attacks() {
		w.refused(t, a)
	}
}
