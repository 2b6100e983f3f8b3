package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Findings about guardrails.
const (
	GuardrailMissing   ID = "GuardrailMissing"
	GuardrailChanged   ID = "GuardrailChanged"
	GuardrailFailsOpen ID = "GuardrailFailsOpen"
	GuardrailNotDeny   ID = "GuardrailNotDeny"
)

const guardrailWhy = "teams can then set what makes them a Tenant, or reach into other namespaces"

func guardrailChecks() []check {
	return []check{{[]ID{GuardrailMissing, GuardrailChanged, GuardrailFailsOpen, GuardrailNotDeny}, []Source{SourceGuardrails, SourceLandwaiter, SourceResources}, guardrails}}
}

// fullname is what the chart's objects are called.
func (v *view) fullname() string {
	if v.serve != nil {
		return v.serve.name
	}
	return "landwaiter"
}

// guardrails compares what is in force with what this version would install. An
// installation without Tenants needs none.
func guardrails(v *view) []Finding {
	expected, err := ShippedGuardrails(ShippedNamespace)
	if err != nil {
		return nil // they are embedded, and tests read them
	}
	operates := slices.ContainsFunc(programs(v.Landwaiters), func(p *program) bool { return len(p.args) > 0 && p.args[0] == "operate" })
	needed := slices.ContainsFunc(v.Resources, func(o v1beta1.Object) bool { _, is := o.(*v1beta1.Tenant); return is })
	for i := range expected {
		if v.policyNamed(v.renamed(expected[i].Name)) != nil {
			needed = true
		}
	}
	if !needed {
		return nil
	}
	var found []Finding
	for i := range expected {
		if strings.Contains(expected[i].Name, "-operator-") && !operates {
			continue
		}
		found = append(found, v.guardrail(&expected[i])...)
	}
	return found
}

// renamed gives a name of the guardrails the prefix of this installation.
func (v *view) renamed(name string) string {
	return v.fullname() + strings.TrimPrefix(name, ShippedRelease)
}

func (v *view) policyNamed(name string) *admissionv1.ValidatingAdmissionPolicy {
	at := slices.IndexFunc(v.Policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &v.Policies[at]
}

func (v *view) guardrail(expected *admissionv1.ValidatingAdmissionPolicy) []Finding {
	name := v.renamed(expected.Name)
	ref := policy.ObjectRef{Kind: "ValidatingAdmissionPolicy", Name: name}
	again := v.upgrade("guardrails.enabled=true")
	live := v.policyNamed(name)
	bindings := slices.DeleteFunc(slices.Clone(v.Bindings), func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName != name })
	if live == nil || len(bindings) == 0 {
		what := "the guardrail does not exist"
		if live != nil {
			what = "no ValidatingAdmissionPolicyBinding puts the guardrail in force"
		}
		return []Finding{{ID: GuardrailMissing, Severity: Error, Object: ref, What: what, Why: guardrailWhy, Command: again, Keep: "the chart's value guardrails.enabled: true"}}
	}
	var found []Finding
	if live.Spec.FailurePolicy != nil && *live.Spec.FailurePolicy != admissionv1.Fail {
		found = append(found, Finding{ID: GuardrailFailsOpen, Severity: Error, Object: ref, What: fmt.Sprintf("it has failurePolicy %s", *live.Spec.FailurePolicy), Why: guardrailWhy,
			Command: target{"validatingadmissionpolicy", "", name}.merge(map[string]any{"spec": map[string]any{"failurePolicy": "Fail"}})})
	}
	if v.comparable() && GuardrailRules(live) != GuardrailRules(expected) {
		found = append(found, Finding{ID: GuardrailChanged, Severity: Error, Object: ref, What: "its rules are not those of this version of Landwaiter", Why: guardrailWhy, Command: again,
			Keep: "use the version of the command and of the chart that belong together"})
	}
	if !slices.ContainsFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return GuardrailGap(live, &b) == "" }) {
		b := bindings[0]
		mended := map[string]any{"validationActions": []string{"Deny"}, "matchResources": nil}
		if live.Spec.ParamKind != nil {
			mended["paramRef"] = map[string]any{"name": nil, "selector": map[string]any{"matchLabels": nil, "matchExpressions": nil}, "parameterNotFoundAction": "Allow"}
		}
		found = append(found, Finding{ID: GuardrailNotDeny, Severity: Error, Object: policy.ObjectRef{Kind: "ValidatingAdmissionPolicyBinding", Name: b.Name},
			What: "it denies not everywhere: it " + GuardrailGap(live, &b), Why: guardrailWhy,
			Command: target{"validatingadmissionpolicybinding", "", b.Name}.merge(map[string]any{"spec": mended})})
	}
	return found
}

// comparable reports whether the expressions name the same account and namespace as the
// embedded guardrails.
func (v *view) comparable() bool {
	return v.serve != nil && v.fullname() == ShippedRelease && v.Namespace == ShippedNamespace
}
