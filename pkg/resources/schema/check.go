package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faults collects errors up to a bound.
type faults struct {
	list field.ErrorList
	most int
}

func (f *faults) add(e *field.Error) {
	if !f.full() {
		f.list = append(f.list, e)
	}
}

func (f *faults) full() bool { return len(f.list) >= f.most }

// count returns how many maps, lists and scalars value has.
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

// check adds what is wrong with value, in the order of its fields' names, so that replicas say the
// same. It does not look below a value of the wrong type.
func (n *node) check(value any, path *field.Path, found *faults) {
	if n == nil || found.full() || value == nil && n.of.Nullable {
		return
	}
	if is := typeOf(value); !n.takes(is) {
		found.add(field.TypeInvalid(path, is, fmt.Sprintf("must be of type %s: %q", n.typeName(), is)))
		return
	}
	for _, all := range n.allOf {
		all.check(value, path, found)
	}
	if len(n.anyOf) > 0 && !slices.ContainsFunc(n.anyOf, func(one *node) bool { return one.fits(value, path) }) {
		found.add(field.Invalid(path, value, "must validate at least one schema (anyOf)"))
	}
	switch value := value.(type) {
	case string:
		n.checkText(value, path, found)
	case int64:
		n.checkNumber(float64(value), path, found)
	case float64:
		n.checkNumber(value, path, found)
	case []any:
		n.checkList(value, path, found)
	case map[string]any:
		n.checkObject(value, path, found)
	}
}

func (n *node) fits(value any, path *field.Path) bool {
	found := faults{most: 1}
	n.check(value, path, &found)
	return !found.full()
}

func (n *node) checkText(value string, path *field.Path, found *faults) {
	switch length := int64(utf8.RuneCountInString(value)); {
	case n.of.MaxLength != nil && length > *n.of.MaxLength:
		found.add(field.TooLong(path, "", int(*n.of.MaxLength)))
	case n.of.MinLength != nil && length < *n.of.MinLength:
		found.add(field.Invalid(path, value, fmt.Sprintf("should be at least %d chars long", *n.of.MinLength)))
	case n.pattern != nil && !n.pattern.MatchString(value):
		found.add(field.Invalid(path, value, fmt.Sprintf("should match '%s'", n.of.Pattern)))
	}
	if len(n.enum) > 0 && !slices.Contains(n.enum, value) {
		found.add(field.NotSupported(path, value, n.enum))
	}
	if n.of.Format == "date-time" {
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			found.add(field.TypeInvalid(path, value, fmt.Sprintf("must be of type date-time: %q", value)))
		}
	}
}

func (n *node) checkNumber(value float64, path *field.Path, found *faults) {
	if n.of.Format == "int32" && (value > math.MaxInt32 || value < math.MinInt32) {
		found.add(field.Invalid(path, value, "must be of type integer with format int32"))
	}
	switch {
	case n.of.Maximum != nil && value > *n.of.Maximum:
		found.add(field.Invalid(path, value, fmt.Sprintf("should be less than or equal to %v", *n.of.Maximum)))
	case n.of.Minimum != nil && value < *n.of.Minimum:
		found.add(field.Invalid(path, value, fmt.Sprintf("should be greater than or equal to %v", *n.of.Minimum)))
	}
}

func (n *node) checkList(list []any, path *field.Path, found *faults) {
	switch {
	case n.of.MaxItems != nil && int64(len(list)) > *n.of.MaxItems:
		found.add(field.TooMany(path, len(list), int(*n.of.MaxItems)))
	case n.of.MinItems != nil && int64(len(list)) < *n.of.MinItems:
		found.add(field.Invalid(path, len(list), fmt.Sprintf("should have at least %d items", *n.of.MinItems)))
	}
	seen := map[any]int{}
	for i, inner := range list {
		n.items.check(inner, path.Index(i), found)
		if key := n.keyOf(inner); key != nil {
			if seen[key]++; seen[key] == 2 { // the first that is not unique, as an API server says it
				found.add(field.Duplicate(path.Index(i), key))
			}
		}
	}
}

// keyOf returns what an entry of a set or of a list that stands for a map is told by; nil in other
// lists, and for an entry that is a fault by its type.
func (n *node) keyOf(entry any) any {
	if n.of.XListType == nil {
		return nil
	}
	object, isObject := entry.(map[string]any)
	_, isList := entry.([]any)
	switch {
	case *n.of.XListType == "set" && !isObject && !isList:
		return entry
	case *n.of.XListType == "map" && isObject:
		var key string
		for _, name := range n.of.XListMapKeys {
			value, given := object[name]
			key += fmt.Sprintf("%t %T %[2]q;", given, value)
		}
		return key
	}
	return nil
}

func (n *node) checkObject(object map[string]any, path *field.Path, found *faults) {
	if n.of.MaxProperties != nil && int64(len(object)) > *n.of.MaxProperties {
		found.add(field.TooMany(path, len(object), int(*n.of.MaxProperties)))
	}
	for _, name := range n.of.Required {
		if _, given := object[name]; !given {
			found.add(field.Required(path.Child(name), ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if at := n.below(name); at != nil {
			at.check(object[name], path.Child(name), found)
		}
	}
}

// takes reports whether a value of a type may be where n is. 2.0 is no integer: an API server
// takes it where no rule is about it, and Go's decoder never does.
func (n *node) takes(is string) bool {
	switch {
	case n.of.XIntOrString:
		return is == "integer" || is == "string"
	case n.of.Type == "" || is == n.of.Type:
		return true
	}
	return n.of.Type == "number" && is == "integer"
}

func (n *node) typeName() string {
	if n.of.XIntOrString {
		return "integer,string"
	}
	return n.of.Type
}

// typeOf names the type of a value as OpenAPI does.
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
