package onboard

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// SetFlag is the flag whose values [Set] reads. Errors begin with it.
const SetFlag = "--set"

// Settings describe a Tenant, or another struct, on a command line.
type Settings struct {
	// Values are FIELD=VALUE, in order.
	Values []string
	// Near returns the most likely intended word for a misspelt one, as policy.Nearest does. If
	// it is nil, an error lists them all.
	Near func(word string, words []string) (string, bool)
}

// Set adds settings, each FIELD=VALUE, to target, a struct with JSON names. FIELD is a path
// with dots; what follows a map is one key. VALUE is YAML, except that a text field takes a
// VALUE without quotes as it is. Lists grow by entries that they do not have, maps are merged
// and other values replaced. A list takes a single VALUE as one entry, and a
// [v1beta1.TenantSubject] that is text as a group. The error names the field. It refuses fields
// that do not exist, empty values, YAML aliases, and two values for one field.
func Set[T any](target *T, settings Settings) error {
	s, size := setter{given: map[string]string{}, near: settings.Near}, 0
	for _, setting := range settings.Values {
		if size += len(setting); size > maxSettings {
			return fmt.Errorf("%s: all values together have more than %d bytes: use a file", SetFlag, maxSettings)
		}
	}
	for _, setting := range settings.Values {
		field, value, ok := strings.Cut(setting, "=")
		if !ok || field == "" {
			return fmt.Errorf("%s %q: give FIELD=VALUE", SetFlag, setting)
		}
		if slices.Contains(strings.Split(field, "."), "") {
			return fmt.Errorf("%s %s: a name is missing between two dots", SetFlag, field)
		}
		if err := s.at(reflect.ValueOf(target).Elem(), "", field, readValue(value)); err != nil {
			return fmt.Errorf("%s %w", SetFlag, err)
		}
	}
	return nil
}

// maxSettings bounds all settings together: each entry of a list is compared with the others.
const maxSettings = 64 << 10

// setter remembers the text of each field that is not a list, to refuse a second one.
type setter struct {
	given map[string]string
	near  func(word string, words []string) (string, bool)
}

// setting is a VALUE, or a part of one.
type setting struct {
	text string     // as written
	node *yaml.Node // nil if the text is not YAML
}

// readValue never fails: the text of a text field need not be YAML.
func readValue(text string) setting {
	var document, more yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(text))
	if decoder.Decode(&document) != nil || !errors.Is(decoder.Decode(&more), io.EOF) || len(document.Content) != 1 {
		return setting{text: text}
	}
	return setting{text: text, node: document.Content[0]}
}

func (v setting) is(kind yaml.Kind) bool { return v.node != nil && v.node.Kind == kind }

// quoted reports whether YAML quotes delimit the text.
func (v setting) quoted() bool {
	return v.is(yaml.ScalarNode) && v.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
}

// scalar returns the text of a text field; ok is false for a list or a map in brackets.
func (v setting) scalar() (text string, ok bool) {
	switch {
	case v.quoted():
		return v.node.Value, true
	case v.node != nil && v.node.Kind != yaml.ScalarNode && v.node.Style&yaml.FlowStyle != 0:
		return "", false
	}
	return v.text, true
}

// empty reports whether there is no value, as in a script whose variable is not set.
func (v setting) empty() bool {
	text, ok := v.scalar()
	return ok && strings.TrimSpace(text) == "" || !ok && len(v.node.Content) == 0
}

// parts returns the settings in a list or map; those of a map alternate between keys and
// values.
func (v setting) parts() (made []setting) {
	for _, node := range v.node.Content {
		part := setting{text: node.Value, node: node}
		if node.Tag == "!!null" {
			part.text = ""
		}
		made = append(made, part)
	}
	return made
}

// at sets the value at a path below a value.
func (s *setter) at(value reflect.Value, name, path string, v setting) error {
	if path == "" {
		return s.value(value, name, v)
	}
	value = allocated(value)
	switch {
	case isText(value):
	case value.Kind() == reflect.Map:
		return s.entry(value, name, path, v)
	case value.Kind() == reflect.Struct:
		first, rest, _ := strings.Cut(path, ".")
		field, err := s.field(value, name, first)
		if err != nil {
			return err
		}
		return s.at(field, joined(name, first), rest, v)
	}
	return fmt.Errorf("%s.%s: %s has no fields", name, path, name)
}

// value sets a whole value.
func (s *setter) value(value reflect.Value, name string, v setting) error {
	switch {
	case v.is(yaml.AliasNode):
		return fmt.Errorf("%s: write the value out, without an alias of YAML", name)
	case value.Kind() == reflect.Pointer && v.is(yaml.MappingNode) && v.empty():
		allocated(value) // {} is a part with only defaults
		return nil
	case v.empty():
		return fmt.Errorf("%s: the value is empty: give one, or leave the field out", name)
	}
	value = allocated(value)
	subject, isSubject := value.Addr().Interface().(*v1beta1.TenantSubject)
	switch {
	case isText(value):
		return s.scalar(value, name, v)
	case isSubject && !v.is(yaml.MappingNode):
		text, ok := v.scalar()
		if !ok {
			break
		}
		*subject = v1beta1.TenantSubject{Kind: v1beta1.SubjectGroup, Name: text}
		return nil
	case value.Kind() == reflect.Interface:
		return s.anything(value, name, v)
	case value.Kind() == reflect.Slice:
		return s.list(value, name, v)
	case (value.Kind() == reflect.Map || value.Kind() == reflect.Struct) && v.is(yaml.MappingNode):
		parts := v.parts()
		for i := 0; i < len(parts); i += 2 {
			if err := s.below(value, name, parts[i], parts[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	return wrong(value, name, v)
}

// anything sets VALUE where any value is permitted.
func (s *setter) anything(value reflect.Value, name string, v setting) error {
	made := reflect.New(reflect.TypeFor[string]()).Elem()
	switch {
	case v.is(yaml.MappingNode):
		made = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
	case v.is(yaml.SequenceNode):
		made = reflect.New(reflect.TypeFor[[]any]()).Elem()
	case v.is(yaml.ScalarNode) && !v.quoted() && v.node.Tag == "!!bool":
		made = reflect.New(reflect.TypeFor[bool]()).Elem()
	case v.is(yaml.ScalarNode) && !v.quoted() && v.node.Tag == "!!int":
		made = reflect.New(reflect.TypeFor[int64]()).Elem()
	}
	if err := s.value(made, name, v); err != nil {
		return err
	}
	value.Set(made)
	return nil
}

// below sets one entry of a map, or field of a struct, for which VALUE has a map.
func (s *setter) below(value reflect.Value, name string, key, v setting) error {
	text, ok := key.scalar()
	if !ok || key.empty() {
		return fmt.Errorf("%s: a key is empty or no text", name)
	}
	if value.Kind() == reflect.Map {
		return s.entry(value, name, text, v)
	}
	field, err := s.field(value, name, text)
	if err != nil {
		return err
	}
	return s.value(field, joined(name, text), v)
}

// list adds the entries that a list does not have.
func (s *setter) list(value reflect.Value, name string, v setting) error {
	entries := []setting{v}
	switch {
	case v.is(yaml.SequenceNode):
		entries = v.parts()
	case v.is(yaml.ScalarNode) && v.node.Tag == "!!null" && !v.quoted():
		return fmt.Errorf("%s: the value is empty: give one, or leave the field out", name)
	}
	for _, entry := range entries {
		made := reflect.New(value.Type().Elem()).Elem()
		own := setter{given: map[string]string{}, near: s.near} // entries do not exclude each other
		if err := own.value(made, name, entry); err != nil {
			return err
		}
		known := false
		for i := range value.Len() {
			known = known || reflect.DeepEqual(value.Index(i).Interface(), made.Interface())
		}
		if !known {
			value.Set(reflect.Append(value, made))
		}
	}
	return nil
}

// entry sets one entry of a map.
func (s *setter) entry(value reflect.Value, name, key string, v setting) error {
	made := reflect.New(value.Type().Elem()).Elem()
	if err := s.value(made, joined(name, key), v); err != nil {
		return err
	}
	if value.IsNil() {
		value.Set(reflect.MakeMap(value.Type()))
	}
	value.SetMapIndex(reflect.ValueOf(key).Convert(value.Type().Key()), made)
	return nil
}

// scalar sets a text, a number, or true or false.
func (s *setter) scalar(value reflect.Value, name string, v setting) error {
	text, ok := v.scalar()
	if !ok {
		return wrong(value, name, v)
	}
	if before, ok := s.given[name]; ok && before != text {
		return fmt.Errorf("%s: it is given twice: %s and %s", name, before, text)
	}
	s.given[name] = text
	if value.Kind() == reflect.String {
		value.SetString(text)
		return nil
	}
	encoded := text
	if _, ok := value.Addr().Interface().(json.Unmarshaler); ok {
		encoded = strconv.Quote(text)
	}
	if json.Unmarshal([]byte(encoded), value.Addr().Interface()) != nil {
		return wrong(value, name, v)
	}
	return nil
}

// wrong describes the expected value.
func wrong(value reflect.Value, name string, v setting) error {
	_, amount := value.Addr().Interface().(*resource.Quantity)
	what := "text: put it into quotes"
	switch {
	case amount:
		what = "an amount such as 50, 500m or 2Gi"
	case value.Kind() == reflect.Bool:
		what = "true or false"
	case value.Kind() == reflect.Struct || value.Kind() == reflect.Map:
		what = "a map, such as {NAME: VALUE}"
		if value.Kind() == reflect.Struct {
			what += "; it has " + strings.Join(fieldNames(value.Type()), ", ")
		}
	case value.CanInt() || value.CanUint():
		what = "a whole number"
	}
	return fmt.Errorf("%s: %s is not %s", name, strconv.Quote(v.text), what)
}

// isText reports whether a value is one text in JSON, a number or a bool.
func isText(value reflect.Value) bool {
	switch value.Addr().Interface().(type) {
	case json.Unmarshaler, encoding.TextUnmarshaler:
		return true
	}
	return value.Kind() == reflect.String || value.Kind() == reflect.Bool || value.CanInt() || value.CanUint()
}

// allocated returns the target of a pointer, or the value.
func allocated(value reflect.Value) reflect.Value {
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		value = value.Elem()
	}
	return value
}

// field returns the field with a JSON name.
func (s *setter) field(value reflect.Value, name, field string) (reflect.Value, error) {
	names := fieldNames(value.Type())
	for i := range value.NumField() {
		if jsonName(value.Type().Field(i)) == field && slices.Contains(names, field) {
			return value.Field(i), nil
		}
	}
	if s.near != nil {
		if near, ok := s.near(field, names); ok {
			return reflect.Value{}, fmt.Errorf("%s: there is no such field; did you mean %s?", joined(name, field), joined(name, near))
		}
	}
	return reflect.Value{}, fmt.Errorf("%s: there is no such field; there are %s", joined(name, field), strings.Join(names, ", "))
}

// fieldNames returns the JSON names of the fields of a struct.
func fieldNames(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		if name := jsonName(of.Field(i)); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func jsonName(of reflect.StructField) string {
	name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
	return name
}

func joined(name, field string) string {
	if name == "" {
		return field
	}
	return name + "." + field
}
