package check_test

import (
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

// matches reports whether a policy looks at requests to create objects of a resource with some
// labels.
func matches(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy, group, resource string, its labels.Set) bool {
	t.Helper()
	if p.Spec.MatchConstraints.ObjectSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.MatchConstraints.ObjectSelector)
		require.NoError(t, err)
		if !selector.Matches(its) {
			return false
		}
	}
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
		return has(r.APIGroups, group) && has(r.Resources, resource) &&
			(slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll))
	})
}

// cost evaluates an expression as the API server does, and returns its value and what CEL
// counts for it.
func cost(t *testing.T, expression string, input map[string]any) (value any, units uint64) {
	t.Helper()
	environment, err := cel.NewEnv(cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("params", cel.DynType))
	require.NoError(t, err)
	checked, issues := environment.Compile(expression)
	require.NoError(t, issues.Err())
	program, err := environment.Program(checked, cel.EvalOptions(cel.OptTrackCost))
	require.NoError(t, err)
	result, details, err := program.Eval(input)
	require.NoError(t, err)
	return result.Value(), *details.ActualCost()
}

// An API server evaluates a guardrail that reads Tenants once for each of them, and there
// may be hundreds (of Stores and TrustStores, only those of the request's namespace count): it must not match what is
// frequent, and what else everybody does must end
// at its first condition, for little.
func TestTenantsCostRequestsThatEverybodyMakesNextToNothing(t *testing.T) {
	const most = 60 // of CEL's units, a Tenant; an API server allows 10,000,000 a policy
	all, err := check.ShippedGuardrails(check.ShippedNamespace)
	require.NoError(t, err)
	tenant := map[string]any{"metadata": map[string]any{"name": "t"},
		"spec": map[string]any{"homeNamespace": "t", "namespacePrefix": "t-", "namespaces": []any{"a", "b"}}}
	for _, c := range []struct {
		group, resource string
		frequent        bool
	}{
		{"", "pods", true}, {"", "configmaps", true}, {"", "secrets", true}, {"", "events", true}, {"apps", "replicasets", true},
		{"coordination.k8s.io", "leases", true},
		{"", "namespaces", false}, {"rbac.authorization.k8s.io", "rolebindings", false},
	} {
		request := map[string]any{"params": tenant, "object": map[string]any{"metadata": map[string]any{"name": "free", "labels": map[string]any{"a": "b"}}},
			"request": map[string]any{"userInfo": map[string]any{"username": "spawner"}}}
		total := uint64(0)
		for i := range all {
			p := &all[i]
			if p.Spec.ParamKind == nil || p.Spec.ParamKind.Kind != v1beta1.KindTenant || !matches(t, p, c.group, c.resource, labels.Set{"a": "b"}) {
				continue
			}
			require.False(t, c.frequent, "%s is evaluated for each Tenant when somebody makes %s", p.Name, c.resource)
			require.NotEmpty(t, p.Spec.MatchConditions, "%s has no condition that ends it for %s", p.Name, c.resource)
			concerns, units := cost(t, p.Spec.MatchConditions[0].Expression, request)
			require.Equal(t, false, concerns, "%s goes on for %s that concern no Tenant", p.Name, c.resource)
			total += units
		}
		t.Logf("%s: %d units a Tenant", c.resource, total)
		require.LessOrEqual(t, total, uint64(most), c.resource)
	}
}
