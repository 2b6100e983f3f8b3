//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	const made = "{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s, pod-security.kubernetes.io/enforce: restricted}, annotations: {landwaiter.dev/made: iris-green}}}"
	const kustomization = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: x}, spec: {path: ./, serviceAccountName: %s}}"
	clusterAdmin := persona{"clara", []string{"platform"}}
	for name, a := range map[string]struct {
		who persona
		try request
	}{
		"the account makes a namespace of its Tenant":           {green(), create(namespace, "iris-green-new", team)},
		"the account deletes a namespace of its prefix":         {green(), remove("Namespace", "", "iris-green-web")},
		"the account changes a label of nobody on a member":     {red(), change("Namespace", "", "iris-red-web", label("istio-injection", `"enabled"`))},
		"somebody makes a namespace of nobody":                  {spawner(), create(namespace, "free", "a: b")},
		"somebody deletes a namespace of nobody":                {spawner(), remove("Namespace", "", "payments")},
		"a team admin adds a network policy":                    {greenAdmin(), create("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: iris-green-web, name: x}, spec: {podSelector: {}}}")},
		"a team admin gives rights in a member":                 {greenAdmin(), create(roleBinding, "iris-green-web", "view", "{kind: User, name: guest}")},
		"a developer runs a pod in a member":                    {greenDev(), create("%s", pod("iris-green-web"))},
		"a team admin changes the trust in home":                {greenAdmin(), change("Verifier", "iris-green", "release", `{"spec":{"images":["example.com/**"]}}`)},
		"the account changes the trust in home":                 {green(), change("Verifier", "iris-green", "release", `{"spec":{"images":["example.com/**"]}}`)},
		"Flux keeps its finalizer":                              {greenAdmin(), change("Kustomization", "iris-green", "iris-green", `{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)},
		"a team asks Flux to reconcile now":                     {greenAdmin(), change("Kustomization", "iris-green", "iris-green", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`)},
		"a Kustomization of the team in home, with its account": {greenAdmin(), create(kustomization, "iris-green", "iris-green")},
		"a Kustomization of the team in a member":               {greenDev(), create(kustomization, "iris-green-web", "deployer")},
		"a cluster admin changes a label":                       {platform(), change("Namespace", "", "iris-red-web", label("landwaiter.dev/tenant", `"iris-green"`))},
		"a cluster admin breaks the glass":                      {platform(), change("Namespace", "", "iris-red-web", note("until"))},
		"a cluster admin changes pod security":                  {platform(), change("Namespace", "", "iris-red-web", label("pod-security.kubernetes.io/enforce", `"baseline"`))},
		"a cluster admin deletes the default-deny":              {platform(), remove("NetworkPolicy", "iris-green-web", "default-deny")},
		"a cluster admin deletes a Tenant's namespace":          {platform(), remove("Namespace", "", "iris-red-web")},
		"a cluster admin makes a namespace with a prefix":       {platform(), create(namespace, "iris-green-x", "")},
		"who has Landwaiter's role for admins changes Tenants":  {clusterAdmin, change("Tenant", "", "iris-green", `{"spec":{"namespaces":["green-shop","another"]}}`)},
		"the operator makes a namespace":                        {operator(), create(made, "iris-green-new", team)},
		"the operator deletes a namespace that it made":         {operator(), remove("Namespace", "", "iris-green-web")},
		"the operator takes a Tenant's labels off":              {operator(), change("Namespace", "", "iris-red-web", `{"metadata":{"labels":{"landwaiter.dev/tenant":null,"toolkit.fluxcd.io/tenant":null}}}`)},
		"the operator marks a home":                             {operator(), change("Namespace", "", "iris-green-web", label("landwaiter.dev/home", `"iris-green"`))},
		"the operator adds its finalizer":                       {operator(), change("Tenant", "", "iris-green", `{"metadata":{"finalizers":["landwaiter.dev/operator"]}}`)},
		"the operator writes a status":                          {operator(), changeBelow("status", "Tenant", "", "iris-green", `{"status":{"observedGeneration":1}}`)},
		"the operator binds the admins":                         {operator(), create(roleBinding, "iris-green-web", "admin", "{kind: Group, name: green-admins}")},
		"the operator binds the developers":                     {operator(), create(roleBinding, "iris-green-web", "edit", "{kind: Group, name: green-devs}")},
		"the operator binds the account":                        {operator(), create(roleBinding, "iris-green-web", "landwaiter-reconciler", "{kind: ServiceAccount, namespace: iris-green, name: iris-green}")},
		"the operator lets Landwaiter read what is in home":     {operator(), create(roleBinding, "iris-green", "landwaiter-material", "{kind: ServiceAccount, namespace: landwaiter-system, name: landwaiter}")},
		"the operator changes a network policy":                 {operator(), change("NetworkPolicy", "iris-green-web", "default-deny", `{"spec":{"policyTypes":["Ingress"]}}`)},
		"the operator limits the registries of a Tenant": {operator(), change("TenantAllowedRegistries", "", "iris-green",
			`{"spec":{"enforcementAction":"deny","match":{"kinds":[{"apiGroups":[""],"kinds":["Pod"]}],"namespaceSelector":{"matchLabels":{"landwaiter.dev/tenant":"iris-green"}}},"parameters":{"prefixes":["registry.example.com/green/"]}}}`)},
		"the operator lifts a limit that the Tenant no longer has": {operator(), remove("TenantAllowedRegistries", "", "iris-red")},
		"the operator makes a Kustomization":                       {operator(), create(kustomization, "iris-green", "iris-green")},
		"the operator makes a Provider":                            {operator(), create(provider, "landwaiter-tenant-iris-green", own)},
		"the operator makes the Provider of all others":            {operator(), create(provider, "landwaiter-mutate", "https://landwaiter.landwaiter-system.svc:443/v1/mutate")},
		"the operator makes an Assign":                             {operator(), create(assign, "landwaiter-tenant-iris-green-pods-containers", image, asked)},
		"the operator makes an Assign on templates":                {operator(), create(assign, "landwaiter-templates-containers", "spec.template.spec.initContainers[name:*].image", asked)},
		"the operator makes an Assign on CronJobs":                 {operator(), create(assign, "landwaiter-cronjobs", "spec.jobTemplate.spec.template.spec.containers[name:*].image", asked)},
		"the garbage collector changes what nobody guards":         {accountOf("kube-system", "generic-garbage-collector"), remove("NetworkPolicy", "payments", "x")},
	} {
		err := a.try(suite.Within(t), w.as(t, a.who))
		require.NoError(t, client.IgnoreNotFound(err), name)
	}
}

// The controller that empties a namespace has none of the rights of the platform.
func TestANamespaceThatEndsIsEmptied(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	const name = "iris-green-short"
	require.NoError(t, w.Apply(suite.Within(t), suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {landwaiter.dev/tenant: iris-green}}}", name)))
	for _, format := range []string{
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: %s, name: default-deny, labels: {landwaiter.dev/owner: platform}}, spec: {podSelector: {}}}",
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
	require.NoError(t, w.Client.Patch(suite.Within(t), named("ConfigMap", name, "stays"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	suite.Eventually(t, func(ctx context.Context) error {
		var namespace corev1.Namespace
		err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there: %+v", namespace.Status))
	})
}

// Whatever the operator may write, its fence looks at.
func TestTheFenceCoversEveryRightOfTheOperator(t *testing.T) {
	w := attacked(t)
	var role rbacv1.ClusterRole
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(w.find("ClusterRole", "landwaiter-operator").Object, &role))
	var fence admissionv1.ValidatingAdmissionPolicy
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(w.find("ValidatingAdmissionPolicy", "landwaiter-operator-fence").Object, &fence))
	covered := func(group, resource string) bool {
		return slices.ContainsFunc(fence.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, group) && (slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*"))
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
				require.Equal(t, []string{"admin", "edit", "view", "landwaiter-reconciler", "landwaiter-material"}, rule.ResourceNames)
				continue
			}
			if !slices.ContainsFunc(rule.Verbs, func(v string) bool { return slices.Contains([]string{"create", "update", "patch", "delete"}, v) }) {
				continue
			}
			for _, group := range rule.APIGroups {
				asked++
				switch resource {
				case "events", "tenants/status", "tenants/finalizers": // decide nothing
				default:
					require.True(t, covered(group, resource), "%s.%s", resource, group)
				}
			}
		}
	}
	require.Greater(t, asked, 10)
}
