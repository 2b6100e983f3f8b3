package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// node is what a CRD says of one value. Numbers are int64 or float64, as the API machinery
// decodes them.
type node struct {
	of         *apiextensionsv1.JSONSchemaProps
	properties map[string]*node
	names      []string // of properties, sorted
	items      *node
	additional *node // of a map, whatever the key
	allOf      []*node
	anyOf      []*node
	pattern    *regexp.Regexp
	enum       []string
	initial    any // nil without a default
	rules      []rule
}

// understood lists the fields of a schema that are validated, or that say nothing of values.
func understood() []string {
	return []string{"Description", "Type", "Properties", "Items", "AdditionalProperties", "AllOf", "AnyOf", "Pattern", "Enum", "Default", "Nullable", "Required",
		"MaxLength", "MinLength", "MaxItems", "MinItems", "MaxProperties", "Maximum", "Minimum", "Format", "XIntOrString", "XListType", "XListMapKeys", "XMapType", "XValidations"}
}

// compiler prepares schemas. It fails for one with anything that this package does not validate.
type compiler struct{ env *cel.Env }

// node prepares a schema and all below it.
func (c compiler) node(of *apiextensionsv1.JSONSchemaProps) (*node, error) {
	if of == nil || of.Type == "array" && of.Items == nil {
		return nil, errors.New("it does not say what is in a list or a map")
	}
	fields := reflect.ValueOf(*of)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; !fields.Field(i).IsZero() && !slices.Contains(understood(), name) {
			return nil, fmt.Errorf("%s is not validated here", name)
		}
	}
	kept := *of
	kept.Description, kept.Properties, kept.Items, kept.AdditionalProperties = "", nil, nil, nil // half a megabyte
	n := &node{of: &kept, properties: map[string]*node{}, names: slices.Sorted(maps.Keys(of.Properties))}
	var err error
	for _, name := range n.names {
		below := of.Properties[name]
		if n.properties[name], err = c.node(&below); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if of.Items != nil {
		if n.items, err = c.node(of.Items.Schema); err != nil {
			return nil, fmt.Errorf("items: %w", err)
		}
	}
	if of.AdditionalProperties != nil {
		if n.additional, err = c.node(of.AdditionalProperties.Schema); err != nil {
			return nil, fmt.Errorf("additionalProperties: %w", err)
		}
	}
	if n.allOf, err = c.all(of.AllOf); err != nil {
		return nil, fmt.Errorf("allOf: %w", err)
	}
	if n.anyOf, err = c.all(of.AnyOf); err != nil {
		return nil, fmt.Errorf("anyOf: %w", err)
	}
	return n, c.value(n)
}

func (c compiler) all(list []apiextensionsv1.JSONSchemaProps) (nodes []*node, err error) {
	for i := range list {
		n, err := c.node(&list[i])
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// value prepares what n says of the value itself.
func (c compiler) value(n *node) (err error) {
	if n.of.Pattern != "" {
		if n.pattern, err = regexp.Compile(n.of.Pattern); err != nil {
			return err
		}
	}
	for _, value := range n.of.Enum {
		var text string
		if err := json.Unmarshal(value.Raw, &text); err != nil {
			return fmt.Errorf("an enum has what is no string: %w", err)
		}
		n.enum = append(n.enum, text)
	}
	if n.of.Default != nil {
		if err := utiljson.Unmarshal(n.of.Default.Raw, &n.initial); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	if format := n.of.Format; format != "" && !slices.Contains([]string{"int32", "int64", "date-time"}, format) {
		return fmt.Errorf("format %s is not validated here", format)
	}
	for i := range n.of.XValidations {
		if n.of.XValidations[i].Message == "" {
			return errors.New("a rule has no message")
		}
		r, err := c.rule(&n.of.XValidations[i])
		if err != nil {
			return err
		}
		if r.program != nil {
			n.rules = append(n.rules, r)
		}
	}
	return nil
}

// below returns what n says of the field of an object, or of the entry of a map; nil if nothing.
func (n *node) below(name string) *node {
	if found := n.properties[name]; found != nil {
		return found
	}
	return n.additional
}

// complete fills in defaults below value, in place.
func (n *node) complete(value any) {
	if n == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range n.names {
			if at := n.properties[name]; at.initial != nil && at.lacks(value[name]) {
				value[name] = runtime.DeepCopyJSONValue(at.initial)
			}
		}
		for name, inner := range value {
			n.below(name).complete(inner)
		}
	case []any:
		for _, inner := range value {
			n.items.complete(inner)
		}
	}
}

// lacks reports whether value is null where that is no value.
func (n *node) lacks(value any) bool { return value == nil && !n.of.Nullable }

// unknown appends the paths of fields below value that the schema does not have.
func (n *node) unknown(value any, path string, found []string) []string {
	if n == nil {
		return found
	}
	switch value := value.(type) {
	case map[string]any:
		if n.of.Type != "object" {
			return found
		}
		for name, inner := range value {
			if at := n.below(name); at != nil {
				found = at.unknown(inner, path+"."+name, found)
			} else {
				found = append(found, path+"."+name)
			}
		}
	case []any:
		if n.of.Type != "array" {
			return found
		}
		for i, inner := range value {
			found = n.items.unknown(inner, fmt.Sprintf("%s[%d]", path, i), found)
		}
	}
	return found
}
