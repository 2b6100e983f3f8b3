package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// guarded is a sound installation with guardrails, and the binding of the one that keeps the
// names of namespaces, of which each Tenant is a parameter.
func guarded(t *testing.T) (*check.Inventory, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	i := sound(t)
	var err error
	i.Policies, err = check.ShippedGuardrails(check.ShippedNamespace)
	require.NoError(t, err)
	at := -1
	for _, p := range i.Policies {
		b := admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named("", p.Name), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: p.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
		if p.Spec.ParamKind != nil {
			allow := admissionv1.AllowAction
			b.Spec.ParamRef = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: &allow}
		}
		if p.Name == "landwaiter-namespace-names" {
			at = len(i.Bindings)
		}
		i.Bindings = append(i.Bindings, b)
	}
	require.GreaterOrEqual(t, at, 0)
	return i, &i.Bindings[at]
}

func TestABindingThatLeavesAnythingOutIsFound(t *testing.T) {
	i, _ := guarded(t)
	require.Empty(t, check.Examine(i, schema.Embedded()).Findings)
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, c := range map[string]struct {
		narrow func(*admissionv1.ValidatingAdmissionPolicyBinding)
		says   string
	}{
		"one Tenant by its name": {func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ParamRef = &admissionv1.ParamRef{Name: "iris-green"}
		}, "every Tenant"},
		"some Tenants by a label": {func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.Spec.ParamRef.Selector = some }, "every Tenant"},
		"some by an expression": {func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ParamRef.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}
		}, "every Tenant"},
		"those of one namespace": {func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.Spec.ParamRef.Namespace = "team-a" }, "every Tenant"},
		"none":                   {func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.Spec.ParamRef = nil }, "every Tenant"},
		"some namespaces": {func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: some}
		}, "matchResources"},
		"only audits": {func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		}, "[Audit]"},
	} {
		t.Run(name, func(t *testing.T) {
			i, b := guarded(t)
			c.narrow(b)
			found := check.Examine(i, schema.Embedded()).Findings
			require.Len(t, found, 1)
			require.Equal(t, check.GuardrailNotDeny, found[0].ID)
			require.Equal(t, "landwaiter-namespace-names", found[0].Object.Name)
			require.Contains(t, found[0].Message, c.says)
			require.Contains(t, found[0].Command, `"paramRef":{"name":null,`, "the command mends each of these")

			// Several bindings add up.
			second := b.DeepCopy()
			second.Name = "second"
			second.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: b.Spec.PolicyName,
				ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}, ParamRef: &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}}}
			i.Bindings = append(i.Bindings, *second)
			require.Empty(t, check.Examine(i, schema.Embedded()).Findings)
		})
	}
}
