//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestWhatTeamsAndThePlatformNeedIsAllowed(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	const team = "landwaiter.dev/tenant: iris-green, toolkit.fluxcd.io/tenant: iris-green"
	const security = "pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: latest, pod-security.kubernetes.io/warn: " +
		"restricted, pod-security.kubernetes.io/warn-version: latest"
	const made = "{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s, " + security + "}, annotations: {landwaiter.dev/created: iris-green}}}"
	// Somebody took the label off its namespace.
	w.planted(t,
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: payments, name: iris-red-admins, labels: "+
			"{landwaiter.dev/owner: platform, landwaiter.dev/tenant: iris-red}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}"),
		suite.Object("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: payments, name: default-deny, labels: {landwaiter.dev/owner: "+
			"platform, landwaiter.dev/tenant: iris-red}}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}"))
	// It has left its Tenant, and so has what restricts it.
	w.planted(t,
		suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: red-left, labels: {landwaiter.dev/tenant: iris-red, toolkit.fluxcd.io/tenant: iris-red, "+
			"pod-security.kubernetes.io/enforce: restricted}, annotations: {landwaiter.dev/created: iris-red}}}"),
		suite.Object("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: red-left, name: default-deny, labels: {landwaiter.dev/owner: "+
			"platform, landwaiter.dev/tenant: iris-red}}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}"))
	const kustomization = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: x}, spec: {path: ./, " +
		"serviceAccountName: %s}}"
	clusterAdmin := persona{"clara", []string{"platform"}}
	needed := map[string]allowed{
		"the account makes a namespace of its Tenant":   {green(), create(namespace, "iris-green-new", team)},
		"the account deletes a namespace of its prefix": {green(), remove("Namespace", "", "iris-green-web")},
		"the account changes a label of nobody on a " +
			"tenant namespace": {red(), change("Namespace", "", "iris-red-web", label("istio-injection", `"enabled"`))},
		"somebody makes a namespace of nobody":   {spawner(), create(namespace, "free", "a: b")},
		"somebody deletes a namespace of nobody": {spawner(), remove("Namespace", "", "payments")},
		"a team admin adds a network policy": {greenAdmin(),
			create("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: iris-green-web, name: x}, spec: {podSelector: {}}}")},
		"a team admin gives permissions in a " +
			"tenant namespace": {greenAdmin(), create(roleBinding, "iris-green-web", "view", "{kind: User, name: guest}")},
		"a developer runs a pod in a tenant namespace": {greenDev(), create("%s", pod("iris-green-web"))},
		"a team admin changes the trust in the " +
			"home namespace": {greenAdmin(), change("Verifier", "iris-green", "release", `{"spec":{"images":["example.com/**"]}}`)},
		"the account changes the trust in the " +
			"home namespace": {green(), change("Verifier", "iris-green", "release", `{"spec":{"images":["example.com/**"]}}`)},
		"Flux keeps its finalizer": {greenAdmin(),
			change("Kustomization", "iris-green", "iris-green", `{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)},
		"a team asks Flux to reconcile now": {greenAdmin(),
			change("Kustomization", "iris-green", "iris-green", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`)},
		"a Kustomization of the team in the home namespace, with its account": {greenAdmin(), create(kustomization, "iris-green", "iris-green")},
		"one that decrypts with the team's key": {greenAdmin(),
			create(kustomization, "iris-green", "iris-green, decryption: {provider: sops, secretRef: {name: sops-age}}")},
		"one that decrypts as the team's account": {greenAdmin(),
			create(kustomization, "iris-green", "iris-green, decryption: {provider: sops, serviceAccountName: iris-green}")},
		"the platform's own, that decrypts": {platform(),
			create(kustomization, "iris-green", "iris-green, decryption: {provider: sops}")},
		"a Kustomization of the team in a tenant namespace": {greenDev(), create(kustomization, "iris-green-web", "deployer")},
		"a cluster admin changes a label": {platform(),
			change("Namespace", "", "iris-red-web", label("landwaiter.dev/tenant", `"iris-green"`))},
		"a cluster admin breaks the glass": {platform(), change("Namespace", "", "iris-red-web", note("until"))},
		"a cluster admin changes pod security": {platform(),
			change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce", `"baseline"`))},
		"a cluster admin deletes the default-deny":        {platform(), remove("NetworkPolicy", "iris-green-web", "default-deny")},
		"a cluster admin deletes a Tenant's namespace":    {platform(), remove("Namespace", "", "iris-red-web")},
		"a cluster admin makes a namespace with a prefix": {platform(), create(namespace, "iris-green-x", "")},
		"who has Landwaiter's role for admins " +
			"changes Tenants": {clusterAdmin, change("Tenant", "", "iris-green", `{"spec":{"namespaces":["green-shop","another"]}}`)},
		"the operator makes a namespace": {operator(), create(made, "iris-green-new", team)},
		"the operator takes a Tenant's labels off a namespace that left it": {operator(), change("Namespace", "", "red-left",
			`{"metadata":{"labels":{"landwaiter.dev/tenant":null,"landwaiter.dev/home-namespace":null,"toolkit.fluxcd.io/tenant":null},`+
				`"annotations":{"landwaiter.dev/created":null,"landwaiter.dev/adopted":null}}}`)},
		"the operator leaves a network " +
			"policy there": {operator(),
			change("NetworkPolicy", "red-left", "default-deny", `{"metadata":{"labels":{"landwaiter.dev/owner":null,"landwaiter.dev/tenant":null}}}`)},
		"the operator deletes a network policy there": {operator(), remove("NetworkPolicy", "red-left", "default-deny")},
		"the operator marks a home namespace": {operator(),
			change("Namespace", "", "iris-green", label("landwaiter.dev/home-namespace", `"iris-green"`))},
		"the operator raises pod security": {operator(),
			change("Namespace", "", "iris-green", label("pod-security.kubernetes.io/warn", `"restricted"`))},
		"the operator adds its finalizer": {operator(),
			change("Tenant", "", "iris-green", `{"metadata":{"finalizers":["landwaiter.dev/operator"]}}`)},
		"the operator deletes what lost its namespace's label": {operator(), remove("RoleBinding", "payments", "iris-red-admins")},
		"the operator releases what lost its " +
			"namespace's label": {operator(),
			change("NetworkPolicy", "payments", "default-deny", `{"metadata":{"labels":{"landwaiter.dev/owner":null,"landwaiter.dev/tenant":null}}}`)},
		"the operator lets Flux leave " +
			"alone what ends": {operator(), change("Kustomization", "past", "past", `{"spec":{"suspend":true,"deletionPolicy":"Orphan"}}`)},
		"the operator deletes what Flux leaves alone": {operator(), remove("Kustomization", "past", "left")},
		"the operator lets go of a namespace " +
			"of what ends": {operator(),
			change("Namespace", "", "past", `{"metadata":{"labels":{"landwaiter.dev/tenant":null},"annotations":{"landwaiter.dev/created":null}}}`)},
		"the operator lets a Tenant go that Landwaiter says ends": {operator(), change("Tenant", "", "iris-past", `{"metadata":{"finalizers":null}}`)},
		"the operator writes its condition": {operator(),
			changeBelow("status", "Tenant", "", "iris-green",
				`{"status":{"conditions":[{"type":"Provisioned","status":"False","reason":"X","message":"x","observedGeneration":1,`+
					`"lastTransitionTime":"2026-01-01T00:00:00Z"},`+pending+`]}}`)},
		"the operator binds the admins": {operator(),
			subjectsOf("iris-green-web", "iris-green-admins", `{"kind":"Group","name":"green-admins"}`)},
		"the operator binds the developers": {operator(),
			subjectsOf("iris-green-web", "iris-green-developers", `{"kind":"Group","name":"green-devs"}`)},
		"the operator binds the account": {operator(),
			subjectsOf("iris-green-web", "iris-green-reconciler", `{"kind":"ServiceAccount","namespace":"iris-green","name":"iris-green"}`)},
		"the operator takes a binding away": {operator(), remove("RoleBinding", "iris-green-web", "iris-green-admins")},
		"the operator lets Landwaiter read what is in the " +
			"home namespace": {operator(),
			create(bound, "iris-green", "landwaiter-reference-reader", ofGreen, "landwaiter-reference-reader",
				"{kind: ServiceAccount, namespace: landwaiter-system, name: landwaiter}")},
		"the operator tells the team": {operator(),
			change("ConfigMap", "iris-green", "landwaiter-tenant",
				`{"data":{"tenant":"iris-green","homeNamespace":"iris-green","namespaces":"iris-green\ngreen-shop\niris-green-web"}}`)},
		"the operator repairs a network policy": {operator(),
			change("NetworkPolicy", "iris-green-web", "default-deny", `{"spec":{"podSelector":{},"policyTypes":["Ingress","Egress"]}}`)},
		"the operator limits the registries of a Tenant": {operator(), change("TenantAllowedRegistries", "", "iris-green",
			`{"spec":{"enforcementAction":"deny","match":{"kinds":[{"apiGroups":[""],"kinds":["Pod"]}],`+
				`"namespaceSelector":{"matchLabels":{"landwaiter.dev/tenant":"iris-green"}}},"parameters":{"prefixes":["registry.example.com/green/"]}}}`)},
		"the operator lifts a limit that the Tenant no longer has": {operator(), remove("TenantAllowedRegistries", "", "iris-red")},
		"the operator makes " +
			"a repository": {operator(),
			labelled("GitRepository", "iris-green", "iris-green", `, spec: {interval: 60s, timeout: 60s, ref: {branch: main}, url: "https://example.com/green"}`)},
		"the operator repairs a " +
			"Kustomization": {operator(),
			change("Kustomization", "iris-green", "iris-green",
				`{"spec":{"force":false,"interval":"10m","retryInterval":"1m","sourceRef":{"kind":"GitRepository","name":"iris-green"}}}`)},
		"the operator makes a Provider": {operator(), create(provider, "landwaiter-tenant-iris-green", pinned+", "+ofGreen, own)},
		"the operator makes the Provider of a " +
			"tenant namespace": {operator(),
			create(provider, "landwaiter-tenant-iris-green.iris-green-web", pinned+", "+ofGreen, strings.ReplaceAll(own, "iris-green", "iris-green-web"))},
		"the operator makes the Provider of all others": {operator(), create(provider, "landwaiter-mutate", pinned, everyone)},
		"the operator makes an Assign": {operator(),
			create(assign, "landwaiter-tenant-iris-green-pods-containers", pinned+", "+ofGreen, "namespaces: [iris-green, green-shop, iris-green-web]", image,
				asksFor("landwaiter-tenant-iris-green"))},
		"the operator makes an Assign of a " +
			"tenant namespace": {operator(),
			create(assign, "landwaiter-tenant-iris-gree-0123456789-pods-containers", pinned+", "+ofGreen, "namespaces: [iris-green-web]", image,
				asksFor("landwaiter-tenant-iris-green.iris-green-web"))},
		"the operator makes an Assign " +
			"of all others": {operator(), create(assign, "landwaiter-pods-containers", pinned, everywhere, image, asksFor("landwaiter-mutate"))},
		"the garbage collector changes what nobody guards": {accountOf("kube-system", "generic-garbage-collector"), remove("NetworkPolicy", "payments", "x")},
	}
	maps.Copy(needed, neededOfPieces())
	for name, a := range needed {
		err := a.try(suite.Within(t), w.as(t, a.who))
		require.NoError(t, client.IgnoreNotFound(err), name)
	}
}

// The controller that empties a namespace has none of the permissions of the platform.
func TestANamespaceThatEndsIsEmptied(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	const name = "iris-green-short"
	require.NoError(t,
		w.Apply(suite.Within(t), suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {landwaiter.dev/tenant: iris-green}}}", name)))
	for _, format := range []string{
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: %s, name: default-deny, labels: {landwaiter.dev/owner: platform}}, spec: " +
			"{podSelector: {}}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: %s, name: tenant, labels: {landwaiter.dev/owner: platform}}, spec: {hard: {pods: 5}}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %s, name: x, labels: {landwaiter.dev/owner: platform}}}",
		"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: x, labels: {landwaiter.dev/owner: platform}}, spec: {}}",
	} {
		require.NoError(t, w.Apply(suite.Within(t), suite.Object(format, name)))
	}
	// It keeps the use of the quota up to date, as its own account.
	suite.Eventually(t, func(ctx context.Context) error {
		var quota corev1.ResourceQuota
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: "tenant"}, &quota)
		if err == nil && len(quota.Status.Hard) == 0 {
			err = errors.New("the quota has no status")
		}
		return err
	})
	stays := suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: stays, finalizers: [example.com/stay]}}", name)
	require.NoError(t, w.Apply(suite.Within(t), stays, binding(name, "admins", "admin", group("green-admins"))))
	require.NoError(t, w.as(t, green()).Delete(suite.Within(t), named("Namespace", "", name)), "it begins with the prefix")
	suite.Eventually(t, func(ctx context.Context) error {
		if err := change("ConfigMap", name, "stays", label("landwaiter.dev/owner", `"platform"`))(ctx, w.as(t, greenAdmin())); !refusedBy(err, "platform-objects") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	require.NoError(t,
		w.Client.Patch(suite.Within(t), named("ConfigMap", name, "stays"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	suite.Eventually(t, func(ctx context.Context) error {
		var namespace corev1.Namespace
		err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there: %+v", namespace.Status))
	})
}

// The operator guardrail checks whatever the operator may write.
func TestTheOperatorGuardrailCoversEveryRightOfTheOperator(t *testing.T) {
	w := attacked(t)
	var role rbacv1.ClusterRole
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(w.find("ClusterRole", "landwaiter-operator").Object, &role))
	var guardrail admissionv1.ValidatingAdmissionPolicy
	require.NoError(t,
		runtime.DefaultUnstructuredConverter.FromUnstructured(w.find("ValidatingAdmissionPolicy", "landwaiter-operator-guardrail").Object, &guardrail))
	covered := func(group, resource string) bool {
		return slices.ContainsFunc(guardrail.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, group) && (slices.Contains(r.Resources, resource) ||
				slices.Contains(r.Resources, "*") && !strings.Contains(resource, "/") || slices.Contains(r.Resources, "*/status") && strings.HasSuffix(resource, "/status"))
		})
	}
	asked := 0
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			require.NotContains(t, []string{"*", "escalate", "impersonate", "approve", "sign"}, verb)
		}
		for _, resource := range rule.Resources {
			require.NotContains(t, []string{"*", "secrets", "roles", "serviceaccounts/token", "pods"}, resource)
			if resource == "clusterrolebindings" {
				require.Equal(t, []string{"get"}, rule.Verbs)
				continue
			}
			if resource == "clusterroles" {
				require.Equal(t, []string{"bind"}, rule.Verbs)
				require.Equal(t, []string{"admin", "edit", "view", "landwaiter-reconciler", "landwaiter-reference-reader"}, rule.ResourceNames)
				continue
			}
			if !slices.ContainsFunc(rule.Verbs, func(v string) bool { return slices.Contains([]string{"create", "update", "patch", "delete"}, v) }) {
				continue
			}
			for _, group := range rule.APIGroups {
				asked++
				switch resource {
				case "events", "tenants/finalizers": // decide nothing
				default:
					require.True(t, covered(group, resource), "%s.%s", resource, group)
				}
			}
		}
	}
	require.Greater(t, asked, 10)
}
