package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Refuses returns an error if the schema refuses a whole decoded resource, a pointer to one of the types of
// landwaiter.dev with its spec. It ignores the status, which the resource's owner does not write, and labels and
// annotations, which every API server checks by itself.
//
// A typed object does not say whether a field without a pointer was omitted or is zero. Such
// a field counts as omitted, as it does for package compile.
func (s *Set) Refuses(ctx context.Context, object metav1.Object) error {
	value := reflect.ValueOf(object).Elem()
	kind := value.Type().Name() // as the API machinery requires
	spec, err := tree(value.FieldByName("Spec"))
	if err != nil {
		return fmt.Errorf("validate the spec: %w", err)
	}
	metadata := map[string]any{"name": object.GetName()}
	if namespace := object.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	return s.refuses(ctx, kind, map[string]any{"spec": spec, "metadata": metadata})
}

// RefusesText is [Set.Refuses] for a resource as JSON text.
func (s *Set) RefusesText(ctx context.Context, kind string, text []byte) error {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return err
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp") // null in output of tools
	}
	delete(object, "status")
	return s.refuses(ctx, kind, object)
}

func (s *Set) refuses(ctx context.Context, kind string, object map[string]any) error {
	schema, err := s.Of(kind)
	if err != nil {
		return err
	}
	object["apiVersion"], object["kind"] = schema.apiVersion, kind
	_, errs := schema.Validate(ctx, object)
	return refusal(errs)
}

// refusal returns the first error in words, and how many more there are.
func refusal(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	text := FaultOf(errs[0]).String()
	if len(text) > maxRefusal {
		text = strings.ToValidUTF8(text[:maxRefusal], "") + "…"
	}
	if more := len(errs) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return errors.New(text)
}

// tree returns a value as JSON has it, except that it keeps an empty list or mapping even if
// its field has omitempty: some schemas refuse empty values, but not missing ones.
func tree(value reflect.Value) (any, error) {
	if _, ok := value.Interface().(json.Marshaler); ok {
		return marshalled(value)
	}
	if value.CanAddr() {
		if _, ok := value.Addr().Interface().(json.Marshaler); ok {
			return marshalled(value.Addr())
		}
	}
	switch value.Kind() { //nolint:exhaustive // resources have no other kinds, and default refuses them
	case reflect.Pointer:
		return tree(value.Elem())
	case reflect.Struct:
		object := map[string]any{}
		return object, fields(value, object)
	case reflect.Slice:
		list := make([]any, value.Len())
		for i := range list {
			var err error
			if list[i], err = tree(value.Index(i)); err != nil {
				return nil, err
			}
		}
		return list, nil
	case reflect.Map:
		object := map[string]any{}
		for entries := value.MapRange(); entries.Next(); {
			var err error
			if object[entries.Key().String()], err = tree(entries.Value()); err != nil {
				return nil, err
			}
		}
		return object, nil
	case reflect.String:
		return value.String(), nil
	case reflect.Bool:
		return value.Bool(), nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return value.Int(), nil
	default:
		return nil, fmt.Errorf("a field of type %s", value.Type())
	}
}

// fields adds the fields of a struct to an object.
func fields(value reflect.Value, object map[string]any) error {
	for i := range value.NumField() {
		description := value.Type().Field(i)
		name, options, _ := strings.Cut(description.Tag.Get("json"), ",")
		part := value.Field(i)
		switch {
		case !description.IsExported() || name == "-":
			continue
		case description.Anonymous && name == "":
			if err := fields(part, object); err != nil {
				return err
			}
			continue
		case isNil(part), strings.Contains(options, "omit") && part.IsZero():
			continue
		}
		made, err := tree(part)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		object[name] = made
	}
	return nil
}

func isNil(value reflect.Value) bool {
	switch value.Kind() { //nolint:exhaustive // the others are never nil
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return value.IsNil()
	}
	return false
}

func marshalled(value reflect.Value) (made any, err error) {
	text, err := json.Marshal(value.Interface())
	if err != nil {
		return nil, err
	}
	return made, utiljson.Unmarshal(text, &made)
}

// Fault is an error of [Schema.Validate] in words.
type Fault struct {
	// Field is its path, such as spec.rules[0].images; empty for the whole object.
	Field   string
	Message string
	// Fix says what to do; empty if Message says it.
	Fix string
}

// String returns the fault as one line.
func (f Fault) String() string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// FaultOf puts an API server's error into words. It omits most values: they may be long, and
// the object has them.
func FaultOf(e *field.Error) Fault {
	f := Fault{Field: e.Field, Message: strings.TrimPrefix(e.Detail, e.Field+" in body ")}
	if f.Field == "<nil>" {
		f.Field = ""
	}
	if found := outOfRange.FindStringSubmatch(f.Message); found != nil {
		f.Message, f.Field = found[1], found[2]
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		f.Message, f.Fix = "it is missing", "add it"
	case field.ErrorTypeNotSupported:
		f.Message, f.Fix = fmt.Sprintf("%q is not supported", fmt.Sprint(e.BadValue)),
			"use one of "+strings.TrimPrefix(e.Detail, "supported values: ")
	case field.ErrorTypeDuplicate:
		f.Message, f.Fix = "it is given twice", "remove one"
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		f.Fix = "shorten it"
	case field.ErrorTypeTypeInvalid:
		f.Message, f.Fix = typeMismatch(f.Message)
	case field.ErrorTypeForbidden:
		if f.Field == "metadata.namespace" {
			f.Message, f.Fix = "this kind is cluster-scoped and has no namespace", "remove it"
		}
	case field.ErrorTypeInvalid, field.ErrorTypeNotFound, field.ErrorTypeInternal:
	}
	if f.Message == "should have at least 1 items" {
		f.Message, f.Fix = "must have at least 1 entry", atLeast(f.Field)
	}
	if f.Field == "spec.until" && strings.HasPrefix(f.Message, "should match ") {
		f.Message, f.Fix = fmt.Sprintf("%.40q is not a time in RFC 3339", fmt.Sprint(e.BadValue)), "write a time of the form YYYY-MM-DDThh:mm:ssZ"
	}
	if strings.HasPrefix(f.Message, "should match ") {
		f.Message = misread(f.Field, f.Message, fmt.Sprint(e.BadValue))
	}
	if f.Message == "" {
		f.Message = e.ErrorBody()
	}
	return f
}

// misread explains why a text is not an image pattern or host, with the errors of package image,
// which reads these fields: their regular expressions do not tell what to write.
func misread(field, message, text string) string {
	var err error
	switch digests := strings.Contains(message, "@sha256:"); { // only exceptions have digests
	case imageEntry.MatchString(field) && digests:
		_, _, err = image.ParseSelection(text)
	case imageEntry.MatchString(field):
		_, err = image.ParsePattern(text)
	case hostEntry.MatchString(field):
		_, err = image.ParseHostPattern(text)
	case strings.HasSuffix(field, "].host"):
		_, err = image.NormaliseHost(text)
	case strings.HasSuffix(field, "].path"):
		_, err = image.ParseTemplate("registry.example.com", text)
	case strings.HasSuffix(field, "].repository"):
		host, path, found := strings.Cut(text, "/")
		if !found {
			return fmt.Sprintf("%.80q has no path; write host/path", text)
		}
		_, err = image.ParseTemplate(host, path)
	}
	if err == nil {
		return message
	}
	return err.Error()
}

var (
	// outOfRange matches the API server's message about a number that its type cannot hold.
	outOfRange = regexp.MustCompile(`^Checked value (must be of type .*) in (spec\.\S+)$`)
	// imageEntry matches the field of an image pattern.
	imageEntry = regexp.MustCompile(`^spec\.(\w+(\[\d+\])?\.)?images\[\d+\]$`)
	// hostEntry matches the fields of hosts that may be patterns.
	hostEntry = regexp.MustCompile(`^spec\.(registries|proxy\.additionalHosts)\[\d+\]$`)
	// requireOfRule matches the field for the requirements of a rule.
	requireOfRule = regexp.MustCompile(`^spec\.rules\[\d+\]\.require$`)
)

// atLeast returns the fix for a list that must not be empty. The author of a rule that requires
// nothing may want to check nothing.
func atLeast(path string) string {
	if requireOfRule.MatchString(path) {
		return "add one, or for images that need no check write action: Allow"
	}
	return "add one"
}

// wrongType matches the API server's message about a value of the wrong type.
var wrongType = regexp.MustCompile(`^must be of type (\w+): "(\w+)"$`)

// described has a description of each schema type.
func described(of string) string {
	switch of {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "string":
		return "text"
	case "boolean":
		return "true or false"
	case "integer", "number":
		return "a number"
	}
	return "empty"
}

// typeMismatch names the actual and the required type of a value. YAML's words for true and
// false, and numbers, are only text in quotes.
func typeMismatch(message string) (problem, fix string) {
	found := wrongType.FindStringSubmatch(message)
	if found == nil {
		return message, ""
	}
	want, have := found[1], found[2]
	switch {
	case have == "null":
		fix = "give it a value, or remove it"
	case want == "array" && have == "object":
		fix = `write "- " before it`
	case want == "array":
		fix = "put it into [ ]"
	case want == "object" && have == "array":
		fix = `write its fields without "- " or [ ]`
	case want == "object":
		fix = "write its fields as name: value"
	case have == "object" || have == "array":
		fix = "write one value"
	case want == "string":
		fix = "put it into quotes"
	case have == "string" && (want == "integer" || want == "number"):
		fix = "write a number, without quotes"
	case have == "string" && want == "boolean":
		fix = "write true or false, without quotes"
	}
	if want == "integer" && have == "number" {
		return "it is a fraction and must be a whole number", "write a whole number"
	}
	return fmt.Sprintf("it is %s and must be %s", described(have), described(want)), fix
}
