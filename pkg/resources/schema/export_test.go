package schema

import "slices"

// Requires reports whether the object at a path below spec requires a field.
func (s *Schema) Requires(path []string, name string) bool {
	at := s.structural.Properties["spec"]
	for _, step := range path {
		at = at.Properties[step]
		for at.Items != nil {
			at = *at.Items
		}
	}
	return slices.Contains(at.ValueValidation.Required, name)
}
