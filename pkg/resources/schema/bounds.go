package schema

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// manyValues is how many values an object has before its bounds are looked at first. The
// library compares each error with all others, so tens of thousands of them take half a minute.
const manyValues = 500

// firstBeyond returns the first value of a large object that is of another type than the schema
// says, or beyond its bounds; nil if there is none, and for an object that is not large.
func (s *Schema) firstBeyond(object map[string]any) *field.Error {
	if count(object) <= manyValues {
		return nil
	}
	spec := s.structural.Properties["spec"]
	return beyond(object["spec"], &spec, field.NewPath("spec"))
}

func count(value any) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			n += count(inner)
		}
	case []any:
		for _, inner := range value {
			n += count(inner)
		}
	}
	return n
}

func beyond(value any, s *structural.Structural, path *field.Path) *field.Error {
	if value == nil && s.Nullable || s.XIntOrString || s.Type == "" {
		return nil
	}
	if is := typeOf(value); !fits(is, s) {
		return field.TypeInvalid(path, is, fmt.Sprintf("%s in body must be of type %s: %q", path, s.Type, is))
	}
	bounds := s.ValueValidation
	if bounds == nil {
		bounds = &structural.ValueValidation{}
	}
	switch value := value.(type) {
	case string:
		length := utf8.RuneCountInString(value)
		switch {
		case bounds.MaxLength != nil && int64(length) > *bounds.MaxLength:
			return field.TooLong(path, "", int(*bounds.MaxLength))
		case bounds.MinLength != nil && int64(length) < *bounds.MinLength:
			return field.Invalid(path, "", fmt.Sprintf("%s in body should be at least %d chars long", path, *bounds.MinLength))
		case len(bounds.Enum) > 0 && !slices.ContainsFunc(bounds.Enum, func(e structural.JSON) bool { return e.Object == value }):
			return field.NotSupported(path, value, words(bounds.Enum))
		}
	case []any:
		if bounds.MaxItems != nil && int64(len(value)) > *bounds.MaxItems {
			return field.TooMany(path, len(value), int(*bounds.MaxItems))
		}
		for i, inner := range value {
			if err := beyond(inner, s.Items, path.Index(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return beyondFields(value, s, path)
	}
	return nil
}

func beyondFields(value map[string]any, s *structural.Structural, path *field.Path) *field.Error {
	if most := s.ValueValidation; most != nil && most.MaxProperties != nil && int64(len(value)) > *most.MaxProperties {
		return field.TooMany(path, len(value), int(*most.MaxProperties))
	}
	for _, name := range slices.Sorted(maps.Keys(value)) { // replicas say the same
		if below := of(s, name); below != nil {
			if err := beyond(value[name], below, path.Child(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// of returns the schema of a field, nil if there is none.
func of(s *structural.Structural, name string) *structural.Structural {
	if below, ok := s.Properties[name]; ok {
		return &below
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// wellTyped returns value without what is below a node of another type than the schema says,
// in place: such a node has one fault, whatever it holds.
func wellTyped(value any, s *structural.Structural) any {
	if s == nil || s.XIntOrString || s.Type == "" {
		return value
	}
	if !fits(typeOf(value), s) {
		return nil
	}
	switch value := value.(type) {
	case []any:
		for i, inner := range value {
			value[i] = wellTyped(inner, s.Items)
		}
	case map[string]any:
		for name, inner := range value {
			value[name] = wellTyped(inner, of(s, name))
		}
	}
	return value
}

// fits reports whether a value of a type is one of the schema's type.
func fits(is string, s *structural.Structural) bool {
	return is == s.Type || is == "integer" && s.Type == "number"
}

// typeOf names the type of a value as schemas do.
func typeOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return "null"
}

func words(values []structural.JSON) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = fmt.Sprint(value.Object)
	}
	return list
}
