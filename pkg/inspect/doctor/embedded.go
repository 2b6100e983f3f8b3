package doctor

import (
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
