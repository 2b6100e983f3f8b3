package isolation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/config"
)

// Names that the embedded guardrails are rendered with.
const (
	shippedRelease   = "landwaiter"
	shippedNamespace = "landwaiter-system"
)

// shippedPolicies returns the guardrails of this version by name, for an installation in a
// namespace.
func shippedPolicies(namespace string) (map[string]*admissionv1.ValidatingAdmissionPolicy, error) {
	text, err := config.Files.ReadFile("guardrails/guardrails.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the guardrails of this version: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte(shippedNamespace), []byte(namespace))
	all := map[string]*admissionv1.ValidatingAdmissionPolicy{}
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
			all[p.Name] = &p
		}
	}
}

// sameRules reports whether two policies decide the same, whatever the API server has
// filled in.
func sameRules(one, other *admissionv1.ValidatingAdmissionPolicy) bool {
	return essence(one) == essence(other)
}

// essence is what a policy decides as text. Where Landwaiter is reached is a setting of the
// chart, so it is left out.
func essence(p *admissionv1.ValidatingAdmissionPolicy) string {
	constraints := []any{}
	if m := p.Spec.MatchConstraints; m != nil {
		for _, r := range m.ResourceRules {
			constraints = append(constraints, []any{r.APIGroups, r.APIVersions, r.Operations, r.Resources, r.ResourceNames})
		}
		constraints = append(constraints, len(m.ExcludeResourceRules), selected(m.NamespaceSelector), selected(m.ObjectSelector))
	}
	text, err := json.Marshal([]any{constraints, p.Spec.MatchConditions, p.Spec.Variables, p.Spec.Validations, p.Spec.ParamKind})
	if err != nil {
		return p.Name + ": " + err.Error()
	}
	providerURL := regexp.MustCompile(`r'\^https://[^']*'`)
	return providerURL.ReplaceAllString(string(text), "URL")
}

// selected is a selector as text; none selects as an empty one.
func selected(s *metav1.LabelSelector) string {
	if s == nil {
		s = &metav1.LabelSelector{}
	}
	return metav1.FormatLabelSelector(s)
}

// changed says how the rules of a guardrail differ from those of this version, "" if they
// do not. It knows only the names that the embedded ones have.
func (s *scene) changed(p *admissionv1.ValidatingAdmissionPolicy) (why string, known bool) {
	if !strings.HasPrefix(p.Name, shippedRelease+"-") || s.landwaiter.Name != shippedRelease {
		return "", false
	}
	all, err := shippedPolicies(s.landwaiter.Namespace)
	if err != nil || all[p.Name] == nil {
		return "", false
	}
	if !sameRules(p, all[p.Name]) {
		return "ValidatingAdmissionPolicy " + p.Name + " has other rules than this version of Landwaiter ships", true
	}
	return "", true
}
