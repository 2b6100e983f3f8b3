// Package guardrail knows the guardrails that this version ships: ValidatingAdmissionPolicies
// that keep teams apart. It reads the embedded ones and says what a policy decides, so that
// one from a cluster can be compared. It refuses to judge whether a policy is in force.
package guardrail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/config"
)

// Names that the embedded guardrails are rendered with.
const (
	Release   = "landwaiter"
	Namespace = "landwaiter-system"
)

// Shipped returns the guardrails of this version, in the order of the chart, for an
// installation called [Release] in a namespace. It only fails if this program was built from
// a broken file.
func Shipped(namespace string) ([]admissionv1.ValidatingAdmissionPolicy, error) {
	text, err := config.Files.ReadFile("guardrails/guardrails.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the guardrails of this version: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte(Namespace), []byte(namespace))
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

// Rules returns what a policy decides as text, without what an API server fills in. Policies
// with the same text decide the same.
func Rules(p *admissionv1.ValidatingAdmissionPolicy) string {
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

// selected is a selector as text; none selects as an empty one.
func selected(s *metav1.LabelSelector) string {
	if s == nil {
		s = &metav1.LabelSelector{}
	}
	return metav1.FormatLabelSelector(s)
}
