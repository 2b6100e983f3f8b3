package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/library"
)

// Findings about guardrails.
const (
	GuardrailMissing   ID = "GuardrailMissing"
	GuardrailChanged   ID = "GuardrailChanged"
	GuardrailFailsOpen ID = "GuardrailFailsOpen"
	GuardrailNotDeny   ID = "GuardrailNotDeny"
)

const guardrailWhy = "teams can then set what makes them a Tenant, or reach into other namespaces"

// fullname is what the chart's objects are called.
func (v *view) fullname() string {
	if v.serve != nil {
		return v.serve.Name
	}
	return "landwaiter"
}

// guardrails compares what is in force with what this version would install. An
// installation without Tenants needs none.
func guardrails(v *view, add func(Finding)) {
	expected, err := ShippedGuardrails(ShippedNamespace)
	if err != nil {
		return // they are embedded, and tests read them
	}
	operates := slices.ContainsFunc(programs(v.Landwaiters), func(p *program) bool { return len(p.args) > 0 && p.args[0] == "operate" })
	needed := slices.ContainsFunc(v.Resources, func(o v1beta1.Object) bool { _, is := o.(*v1beta1.Tenant); return is })
	for i := range expected {
		if v.policyNamed(v.renamed(expected[i].Name)) != nil {
			needed = true
		}
	}
	if !needed {
		return
	}
	for i := range expected {
		if strings.Contains(expected[i].Name, "-operator-") && !operates {
			continue
		}
		v.guardrail(&expected[i], add)
	}
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

func (v *view) guardrail(expected *admissionv1.ValidatingAdmissionPolicy, add func(Finding)) {
	name := v.renamed(expected.Name)
	of := builtin("ValidatingAdmissionPolicy", "", name)
	again := v.upgrade("guardrails.enabled=true")
	live := v.policyNamed(name)
	bindings := slices.DeleteFunc(slices.Clone(v.Bindings), func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName != name })
	if live == nil || len(bindings) == 0 {
		what := "the guardrail does not exist"
		if live != nil {
			what = "no ValidatingAdmissionPolicyBinding puts the guardrail in force"
		}
		add(Finding{ID: GuardrailMissing, Severity: Error, Object: of.ObjectRef, What: what, Why: guardrailWhy, Command: again, Keep: "the chart's value guardrails.enabled: true"})
		return
	}
	if live.Spec.FailurePolicy != nil && *live.Spec.FailurePolicy != admissionv1.Fail {
		add(Finding{ID: GuardrailFailsOpen, Severity: Error, Object: of.ObjectRef, What: fmt.Sprintf("it has failurePolicy %s", *live.Spec.FailurePolicy), Why: guardrailWhy,
			Command: of.merge(map[string]any{"spec": map[string]any{"failurePolicy": "Fail"}})})
	}
	if v.comparable() && GuardrailRules(live) != GuardrailRules(expected) {
		add(Finding{ID: GuardrailChanged, Severity: Error, Object: of.ObjectRef, What: "its rules are not those of this version of Landwaiter", Why: guardrailWhy, Command: again,
			Keep: "use the version of the command and of the chart that belong together"})
	}
	if !slices.ContainsFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return GuardrailGap(live, &b) == "" }) {
		b := bindings[0]
		bound := builtin("ValidatingAdmissionPolicyBinding", "", b.Name)
		mended := map[string]any{"validationActions": []string{"Deny"}, "matchResources": nil}
		if live.Spec.ParamKind != nil {
			mended["paramRef"] = map[string]any{"name": nil, "selector": map[string]any{"matchLabels": nil, "matchExpressions": nil}, "parameterNotFoundAction": "Allow"}
		}
		add(Finding{ID: GuardrailNotDeny, Severity: Error, Object: bound.ObjectRef,
			What: "it denies not everywhere: it " + GuardrailGap(live, &b), Why: guardrailWhy,
			Command: bound.merge(map[string]any{"spec": mended})})
	}
}

// comparable reports whether the expressions name the same account and namespace as the
// embedded guardrails.
func (v *view) comparable() bool {
	return v.serve != nil && v.fullname() == ShippedRelease && v.Namespace == ShippedNamespace
}

// Names that the embedded guardrails are rendered with.
const (
	ShippedRelease   = "landwaiter"
	ShippedNamespace = "landwaiter-system"
)

// ShippedGuardrails returns the guardrails of this version, the ValidatingAdmissionPolicies that
// keep teams apart, in the order of the chart, for an installation called [ShippedRelease] in a
// namespace. It only fails if this program was built from
// a broken file.
func ShippedGuardrails(namespace string) ([]admissionv1.ValidatingAdmissionPolicy, error) {
	text, err := config.Files.ReadFile("guardrails/guardrails.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the guardrails of this version: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte(ShippedNamespace), []byte(namespace))
	var all []admissionv1.ValidatingAdmissionPolicy
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var p admissionv1.ValidatingAdmissionPolicy
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the guardrails of this version: %w", err)
		}
		if p.Kind == "ValidatingAdmissionPolicy" {
			all = append(all, p)
		}
	}
}

// GuardrailRules returns what a policy decides as text, without what an API server fills in. Policies
// with the same text decide the same.
func GuardrailRules(p *admissionv1.ValidatingAdmissionPolicy) string {
	type rule struct {
		Groups, Versions, Resources, Names []string
		Operations                         []admissionv1.OperationType
	}
	var constraints []any
	if m := p.Spec.MatchConstraints; m != nil {
		for _, list := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
			var rules []rule
			for _, r := range list {
				rules = append(rules, rule{r.APIGroups, r.APIVersions, r.Resources, r.ResourceNames, r.Operations})
			}
			constraints = append(constraints, rules)
		}
		constraints = append(constraints, selected(m.NamespaceSelector), selected(m.ObjectSelector))
	}
	text, err := json.Marshal([]any{constraints, p.Spec.MatchConditions, p.Spec.Variables, p.Spec.Validations, p.Spec.ParamKind})
	if err != nil {
		return p.Name + ": " + err.Error() // unreachable: policies were read from JSON
	}
	return string(text)
}

// GuardrailGap says where a binding does not put its policy in force, empty if it does for everything
// that the policy is about.
func GuardrailGap(p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) string {
	switch m := b.Spec.MatchResources; {
	case !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny):
		return fmt.Sprintf("does not say Deny but %v", b.Spec.ValidationActions)
	case m != nil && len(m.ResourceRules)+len(m.ExcludeResourceRules)+terms(m.NamespaceSelector)+terms(m.ObjectSelector) > 0:
		return "has matchResources, so the guardrail does not hold everywhere"
	case p.Spec.ParamKind != nil && !everyParam(b.Spec.ParamRef):
		return "does not hold for every Tenant"
	}
	return ""
}

// everyParam reports whether a binding takes all objects of the kind as parameters.
func everyParam(ref *admissionv1.ParamRef) bool {
	return ref != nil && ref.Name == "" && ref.Selector != nil && terms(ref.Selector) == 0
}

// terms is how many conditions a selector has.
func terms(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	return len(s.MatchLabels) + len(s.MatchExpressions)
}

// selected is a selector as text; none selects as an empty one.
func selected(s *metav1.LabelSelector) string {
	if s == nil {
		s = &metav1.LabelSelector{}
	}
	return metav1.FormatLabelSelector(s)
}

// libraryRego returns the Rego of the library's template, empty if it cannot be read, which
// a test excludes.
func libraryRego() string {
	text, err := library.Files.ReadFile("verified-images/template.yaml")
	if err != nil {
		return ""
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return ""
	}
	return regoOf(object)
}

// knownConditions returns the match conditions of config/gatekeeper/values.yaml, squeezed.
func knownConditions() []string {
	text, err := config.Files.ReadFile("gatekeeper/values.yaml")
	if err != nil {
		return nil
	}
	var values struct {
		Validating []admissionv1.MatchCondition `json:"validatingWebhookMatchConditions"`
		Mutating   []admissionv1.MatchCondition `json:"mutatingWebhookMatchConditions"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil
	}
	var all []string
	for _, c := range append(values.Validating, values.Mutating...) {
		all = append(all, squeezed(c.Expression))
	}
	return all
}
