package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/library"
)

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
