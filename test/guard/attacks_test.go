//go:build e2e

package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// attack is a request that RBAC lets pass and that a guardrail refuses. It is a dry run,
// so that it changes nothing where it succeeds.
type attack struct {
	name string
	who  persona
	rule string // of the policies the one that refuses, without the release's name
	also string // another one that refuses, too
	says string // part of the message
	try  func(context.Context, client.Client) error
}

type request = func(context.Context, client.Client) error

// create asks to create an object.
func create(format string, args ...any) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, of(format, args...), client.DryRunAll)
	}
}

// remove asks to delete an object.
func remove(kind, namespace, name string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, named(kind, namespace, name), client.DryRunAll)
	}
}

// change asks to merge a patch into an object.
func change(kind, namespace, name, patch string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, named(kind, namespace, name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

// changeBelow is change by a subresource.
func changeBelow(subresource, kind, namespace, name, patch string) request {
	return func(ctx context.Context, c client.Client) error {
		return c.SubResource(subresource).Patch(ctx, named(kind, namespace, name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

// finalize asks to change the labels of a namespace by the subresource with which the
// namespace controller ends it.
func finalize(name, label, value string) request {
	return func(ctx context.Context, c client.Client) error {
		namespace := named("Namespace", "", name)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		labels := namespace.GetLabels()
		labels[label] = value
		namespace.SetLabels(labels)
		return c.SubResource("finalize").Update(ctx, namespace, client.DryRunAll)
	}
}

// finalizeNoted is finalize with an annotation.
func finalizeNoted(name, key string) request {
	return func(ctx context.Context, c client.Client) error {
		namespace := named("Namespace", "", name)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		notes := namespace.GetAnnotations()
		if notes == nil {
			notes = map[string]string{}
		}
		notes[key] = "x"
		namespace.SetAnnotations(notes)
		return c.SubResource("finalize").Update(ctx, namespace, client.DryRunAll)
	}
}

// note is a patch with an annotation of break-glass.
func note(key string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"landwaiter.dev/break-glass-%s":"x"}}}`, key)
}

// versions are those of the kinds that named knows.
func versions() map[string]string {
	const v1, rbac = "v1", "rbac.authorization.k8s.io/v1"
	return map[string]string{
		"Namespace": v1, "ConfigMap": v1, "ResourceQuota": v1, "ServiceAccount": v1, "Secret": v1, "Pod": v1, "RoleBinding": rbac,
		"NetworkPolicy": "networking.k8s.io/v1", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "Verifier": "landwaiter.dev/v1alpha1",
		"TenantAllowedRegistries": "constraints.gatekeeper.sh/v1beta1", "Tenant": "landwaiter.dev/v1alpha1", "Provider": "externaldata.gatekeeper.sh/v1beta1", "Assign": "mutations.gatekeeper.sh/v1",
	}
}

func named(kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(versions()[kind])
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// refusedBy says whether a policy refused a request.
func refusedBy(err error, rule string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'landwaiter-"+rule+"'")
}

func label(key, value string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value)
}

func attacksOnLabels() []attack {
	const rule, theirs = "tenant-labels", `{"metadata":{"labels":{"landwaiter.dev/tenant":"iris-green"}}}`
	return []attack{
		{"relabel a namespace to another team", red(), rule, "", "landwaiter.dev/tenant", change("Namespace", "", "iris-red-web", theirs)},
		{"relabel it by its status", red(), rule, "", "landwaiter.dev/tenant", changeBelow("status", "Namespace", "", "iris-red-web", theirs)},
		{"relabel it by its finalizers", red(), rule, "", "landwaiter.dev/tenant", finalize("iris-red-web", "landwaiter.dev/tenant", "iris-green")},
		{"take the label off", red(), rule, "", "landwaiter.dev/tenant", change("Namespace", "", "iris-red-web", label("landwaiter.dev/tenant", "null"))},
		{"change Flux's label", red(), rule, "", "toolkit.fluxcd.io/tenant", change("Namespace", "", "iris-red-web", label("toolkit.fluxcd.io/tenant", `"iris-green"`))},
		{"set Gatekeeper's ignore label", red(), rule, "", "admission.gatekeeper.sh/ignore", change("Namespace", "", "iris-red-web", label("admission.gatekeeper.sh/ignore", `"yes"`))},
		{"set it without a value", red(), rule, "", "admission.gatekeeper.sh/ignore", change("Namespace", "", "iris-red-web", label("admission.gatekeeper.sh/ignore", `""`))},
		{"lower pod security", red(), rule, "", "pod-security.kubernetes.io/enforce", change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"take pod security off", red(), rule, "", "pod-security.kubernetes.io/enforce", change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce", "null"))},
		{"pin pod security to an old version", red(), rule, "", "enforce-version", change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce-version", `"v1.0"`))},
		{"let pods into home", red(), rule, "", "landwaiter.dev/home", change("Namespace", "", "iris-red", label("landwaiter.dev/home", "null"))},
		{"have an adopted namespace deleted with the Tenant", red(), rule, "", "landwaiter.dev/made", change("Namespace", "", "iris-red-web", `{"metadata":{"annotations":{"landwaiter.dev/made":"true"}}}`)},
		{"break the glass", red(), rule, "", "landwaiter.dev/break-glass-until", change("Namespace", "", "iris-red-web", note("until"))},
		{"prepare to break it", red(), rule, "", "landwaiter.dev/break-glass-reason", change("Namespace", "", "iris-red-web", note("reason"))},
		{"have it begin earlier", red(), rule, "", "landwaiter.dev/break-glass-from", change("Namespace", "", "iris-red-web", note("from"))},
		{"pass Floors with it", red(), rule, "", "landwaiter.dev/break-glass-floors", change("Namespace", "", "iris-red-web", note("floors"))},
		{"break it by the status", red(), rule, "", "landwaiter.dev/break-glass-until", changeBelow("status", "Namespace", "", "iris-red-web", note("until"))},
		{"break it by the finalizers", red(), rule, "", "landwaiter.dev/break-glass-until", finalizeNoted("iris-red-web", "landwaiter.dev/break-glass-until")},
		{"make a namespace with broken glass", spawner(), rule, "", "landwaiter.dev/break-glass-until", create("{apiVersion: v1, kind: Namespace, metadata: {name: free, annotations: {landwaiter.dev/break-glass-until: x}}}")},
		{"make a namespace of a Tenant to come", spawner(), rule, "", "landwaiter.dev/tenant", create("{apiVersion: v1, kind: Namespace, metadata: {name: free, labels: {landwaiter.dev/tenant: to-come}}}")},
		{"make one that Gatekeeper ignores", spawner(), rule, "", "admission.gatekeeper.sh/ignore", create("{apiVersion: v1, kind: Namespace, metadata: {name: free, labels: {admission.gatekeeper.sh/ignore: x}}}")},
		{"change a namespace of Kubernetes", green(), rule, "", "only namespaces of the Tenant", change("Namespace", "", "kube-system", label("pod-security.kubernetes.io/enforce", `"restricted"`))},
		{"make a member without pod security", green(), rule, "", "pod-security.kubernetes.io", create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-new, labels: {landwaiter.dev/tenant: iris-green, pod-security.kubernetes.io/enforce: privileged}}}")},
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
		{"take the quota's label off by its status", red(), rule, "", says, changeBelow("status", "ResourceQuota", "iris-red-web", "tenant", label("landwaiter.dev/owner", "null"))},
		{"take the rights of the team away", redAdmin(), rule, "", says, remove("RoleBinding", "iris-red-web", "iris-red-reconciler")},
		{"delete the account in home", greenAdmin(), rule, "", says, remove("ServiceAccount", "iris-green", "iris-green")},
		{"change what the team is told", greenAdmin(), rule, "", says, change("ConfigMap", "iris-green", "landwaiter-tenant", `{"data":{"tenant":"x"}}`)},
		{"give the Kustomization another account", greenAdmin(), "platform-objects", "", says, change("Kustomization", "iris-green", "iris-green", `{"spec":{"prune":false}}`)},
		{"keep the platform from the Kustomization", greenAdmin(), rule, "", says, change("Kustomization", "iris-green", "iris-green", `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`)},
		{"keep the rights of the team by a finalizer", greenAdmin(), rule, "", says, change("Kustomization", "iris-green", "iris-green", `{"metadata":{"finalizers":["example.com/stay"]}}`)},
		{"pass for the platform", greenAdmin(), rule, "", says, create("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: iris-green-web, name: x, labels: {landwaiter.dev/owner: platform}}}")},
	}
}

func attacksOnHomes() []attack {
	const kustomization = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: iris-green, name: x}, spec: {path: ./%s}}"
	const release = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: iris-green, name: x}, spec: {interval: 1m%s}}"
	const rule, says = "home-accounts", "set spec.serviceAccountName to iris-green"
	return []attack{
		{"run a pod in home", greenAdmin(), "home-workloads", "", "keeps no workloads", create("%s", pod("iris-green"))},
		{"run one as the account", green(), "home-workloads", "", "keeps no workloads", create("%s", pod("iris-green"))},
		{"a Kustomization with Flux's account", greenAdmin(), rule, "", says, create(kustomization, ", serviceAccountName: kustomize-controller")},
		{"a Kustomization without an account", greenAdmin(), rule, "", says, create(kustomization, "")},
		{"a Kustomization for another cluster", greenAdmin(), rule, "", says, create(kustomization, ", serviceAccountName: iris-green, kubeConfig: {secretRef: {name: x}}")},
		{"a HelmRelease without an account", green(), rule, "", says, create(release, "")},
		{"a HelmRelease with the default account", green(), rule, "", says, create(release, ", serviceAccountName: default")},
	}
}

func attacksOnNames() []attack {
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}"
	const rule, deletion = "namespace-names", "namespace-deletion"
	return []attack{
		{"take a namespace by prefix", spawner(), rule, "", "that begin with iris-green- belong to Tenant iris-green", create(namespace, "iris-green-evil", "")},
		{"let the API server choose the rest of the name", spawner(), rule, "", "that begin with iris-green-", create("{apiVersion: v1, kind: Namespace, metadata: {generateName: iris-green-}}")},
		{"take a name that a Tenant lists", spawner(), rule, "", "the name green-shop belongs to", create(namespace, "green-shop", "")},
		{"make a namespace outside of the prefix", green(), rule, "", "Tenant iris-green", create(namespace, "payments2", "landwaiter.dev/tenant: iris-green")},
		{"make a namespace of another team", green(), rule, "", "iris-", create(namespace, "iris-green-x", "landwaiter.dev/tenant: iris-red")},
		{"make a member that nobody guards", green(), rule, "", "set the label landwaiter.dev/tenant", create(namespace, "iris-green-x", "")},
		{"name two teams", green(), rule, "", "name no other Tenant", create(namespace, "iris-green-x", "landwaiter.dev/tenant: iris-green, toolkit.fluxcd.io/tenant: iris-red")},
		{"change a namespace of nobody", green(), rule, "", "only namespaces of the Tenant", change("Namespace", "", "payments", label("x", `"y"`))},
		{"lower pod security before anybody guards it", green(), rule, "", "only namespaces of the Tenant", change("Namespace", "", "iris-green-old", label("pod-security.kubernetes.io/enforce", `"privileged"`))},
		{"delete the own home", red(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-red")},
		{"delete a member", red(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-red-web")},
		{"delete another team's", green(), deletion, "", "Tenant iris-", remove("Namespace", "", "iris-red-web")},
		{"delete a namespace of nobody", green(), deletion, "", "only the namespaces that it may make", remove("Namespace", "", "payments")},
		{"change a namespace that is older than its Tenant", green(), rule, "", "only namespaces of the Tenant", change("Namespace", "", "iris-green-old", label("x", `"y"`))},
		{"change a namespace in the range of the prefix that another team has", green(), rule, "", "only namespaces of the Tenant", change("Namespace", "", "iris-green-lent", label("x", `"y"`))},
		{"delete a namespace that is older than its Tenant", green(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-green-old")},
		{"delete one that begins with the prefix", spawner(), deletion, "", "only the platform may delete it", remove("Namespace", "", "iris-green-old")},
	}
}

// The status says how many namespaces a Tenant has, and Landwaiter keeps it.
func TestAnAccountMakesNoMoreNamespacesThanATenantMayHave(t *testing.T) {
	allRefuse(t)
	count := func(n int) {
		t.Helper()
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"iris-green-%d","state":"Member"}`, i)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespaces":[`+strings.Join(list, ",")+`]}}`))
		require.NoError(t, w.Client.SubResource("status").Patch(within(t), named("Tenant", "", "iris-green"), patch))
	}
	makes := create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-green-new, labels: {landwaiter.dev/tenant: iris-green}}}")
	count(256)
	t.Cleanup(func() {
		require.NoError(t, w.Client.SubResource("status").Patch(context.WithoutCancel(t.Context()), named("Tenant", "", "iris-green"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespaces":null}}`))))
	})
	eventually(t, "the account makes one more", func(ctx context.Context) error {
		if err := makes(ctx, as(t, green())); err == nil || !strings.Contains(err.Error(), "Tenant iris-green has 256 namespaces") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	require.NoError(t, makes(within(t), as(t, platform())), "a cluster admin may")
	count(255)
	eventually(t, "there is room again", func(ctx context.Context) error { return makes(ctx, as(t, green())) })
}

// Who works in a team cannot take the default-deny away, whatever they may do otherwise.
func TestDefaultDenyCannotBeRemoved(t *testing.T) {
	allRefuse(t)
	for _, who := range []persona{greenAdmin(), green()} {
		for _, namespace := range []string{"iris-green", "iris-green-web"} {
			err := as(t, who).Delete(within(t), named("NetworkPolicy", namespace, "default-deny"))
			require.True(t, refusedBy(err, "platform-objects"), "%s: %v", who.user, err)
			require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: namespace, Name: "default-deny"}, named("NetworkPolicy", namespace, "default-deny")))
		}
	}
}

func pod(namespace string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {namespace: " + namespace + ", name: x}, spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " +
		"containers: [{name: x, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}"
}

func attacks() []attack {
	return slices.Concat(attacksOnLabels(), attacksOnPlatformObjects(), attacksOnHomes(), attacksOnNames(), attacksAsOperator(), attacksOnTenantsAsOperator(), attacksAsLandwaiter())
}

func TestEveryAttackIsRefusedByItsRuleAndSucceedsWithoutIt(t *testing.T) {
	byRule := map[string][]attack{}
	for _, a := range attacks() {
		byRule[a.rule] = append(byRule[a.rule], a)
	}
	for _, a := range attacks() {
		refused(t, a)
	}
	policies := ofKind("ValidatingAdmissionPolicy")
	require.Len(t, policies, len(byRule), "a guardrail has no attack")
	for _, policy := range policies {
		rule := strings.TrimPrefix(policy.GetName(), "landwaiter-")
		require.NotEmpty(t, byRule[rule], rule)
		t.Run(rule, func(t *testing.T) {
			without(t, rule, func() {
				for _, a := range byRule[rule] {
					if a.also != "" {
						without(t, a.also, func() { succeeds(t, a) })
						continue
					}
					succeeds(t, a)
				}
			})
		})
	}
	for _, a := range attacks() {
		refused(t, a)
	}
	t.Logf("%d attacks on %d guardrails", len(attacks()), len(policies))
}

// without takes a guardrail out while f runs.
func without(t *testing.T, rule string, f func()) {
	t.Helper()
	binding := bindingOf("landwaiter-" + rule)
	require.NoError(t, w.Client.Delete(within(t), binding.DeepCopy()))
	defer func() { require.NoError(t, w.Apply(within(t), binding)) }()
	f()
}

// eventually tries for ten seconds: the API server learns of a policy within one.
func eventually(t *testing.T, name string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var last error
	require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
		err := try(ctx)
		if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "would exceed context deadline") {
			last = err
		}
		return err
	}), "%s: %v", name, last)
}

func refused(t *testing.T, a attack) {
	t.Helper()
	c := as(t, a.who)
	eventually(t, a.name, func(ctx context.Context) error {
		err := a.try(ctx, c)
		if refusedBy(err, a.rule) || (a.also != "" && refusedBy(err, a.also)) {
			if refusedBy(err, a.rule) {
				require.ErrorContains(t, err, a.says, a.name)
			}
			require.NotContains(t, err.Error(), "expression", "%s: it is refused by accident", a.name)
			return nil
		}
		return fmt.Errorf("not refused by %s: %w", a.rule, err)
	})
}

func succeeds(t *testing.T, a attack) {
	t.Helper()
	c := as(t, a.who)
	eventually(t, a.name+" without "+a.rule, func(ctx context.Context) error { return a.try(ctx, c) })
}

func ofKind(kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(w.rendered), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

func bindingOf(policy string) *unstructured.Unstructured {
	bindings := ofKind("ValidatingAdmissionPolicyBinding")
	return bindings[slices.IndexFunc(bindings, func(o *unstructured.Unstructured) bool { return o.GetName() == policy })].DeepCopy()
}

// The API server checks the types of expressions and says so in the status.
func TestExpressionsOfGuardrailsHaveNoWarnings(t *testing.T) {
	for _, policy := range ofKind("ValidatingAdmissionPolicy") {
		require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
			var found admissionv1.ValidatingAdmissionPolicy
			err := w.Client.Get(ctx, client.ObjectKeyFromObject(policy), &found)
			if err == nil && found.Status.ObservedGeneration == found.Generation && found.Status.TypeChecking != nil {
				for _, warning := range found.Status.TypeChecking.ExpressionWarnings {
					t.Errorf("%s %s: %s", policy.GetName(), warning.FieldRef, warning.Warning)
				}
				return nil
			}
			return errors.Join(err, fmt.Errorf("%s has not been checked", policy.GetName()))
		}))
		require.Equal(t, "Fail", must(unstructured.NestedString(policy.Object, "spec", "failurePolicy")), policy.GetName())
	}
}

func must(text string, _ bool, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}
