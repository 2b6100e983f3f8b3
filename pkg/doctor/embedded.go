package doctor

import (
	"bytes"
	"errors"
	"io"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/library"
)

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

// libraryGuardrails returns the guardrails that this version installs.
func libraryGuardrails() []admissionv1.ValidatingAdmissionPolicy {
	text, err := config.Files.ReadFile("guardrails/guardrails.yaml")
	if err != nil {
		return nil
	}
	var all []admissionv1.ValidatingAdmissionPolicy
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var p admissionv1.ValidatingAdmissionPolicy
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return nil
		}
		if p.Kind == "ValidatingAdmissionPolicy" {
			all = append(all, p)
		}
	}
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
