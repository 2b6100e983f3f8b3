package schema

import "slices"

// Requires reports whether the object at a path below spec requires a field.
func (s *Schema) Requires(path []string, name string) bool {
	at := s.root.properties["spec"]
	for _, step := range path {
		at = at.properties[step]
		for at.items != nil {
			at = at.items
		}
	}
	return slices.Contains(at.of.Required, name)
}

// Large reports whether an object has so many values that its first error alone is said.
func Large(object map[string]any) bool { return count(object) > manyValues }
