package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

// KeepUnused and MaxFaults are limits for tests.
const (
	KeepUnused = keepUnused
	MaxFaults  = maxFaults
)

// NewSet returns a set that nobody else uses.
func NewSet() *Set { return newSet() }

// Prepared returns how many schemas s keeps.
func (s *Set) Prepared() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kinds)
}

// Unordered returns what the library finds in the values of an object by itself.
func (s *Schema) Unordered(object map[string]any) field.ErrorList {
	return schemavalidation.ValidateCustomResource(nil, object, whole{validate.NewSchemaValidator(s.values, nil, "", strfmt.Default)})
}

// Ordered returns what [ordered] finds in them.
func (s *Schema) Ordered(object map[string]any) field.ErrorList {
	return schemavalidation.ValidateCustomResource(nil, object, ordered{s.values})
}

type whole struct{ *validate.SchemaValidator }

func (w whole) Validate(value any, _ ...schemavalidation.ValidationOption) *validate.Result {
	return w.SchemaValidator.Validate(value)
}

// InOrder sorts errors by their paths.
func InOrder(errs field.ErrorList) field.ErrorList { return inOrder(errs) }

// Requires reports whether the object at a path below spec requires a field.
func (s *Schema) Requires(path []string, name string) bool {
	at := s.values.Properties["spec"]
	for _, step := range path {
		at = at.Properties[step]
		for at.Items != nil {
			at = *at.Items.Schema
		}
	}
	return slices.Contains(at.Required, name)
}
