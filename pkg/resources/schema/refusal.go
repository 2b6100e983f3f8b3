package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Refused begins what is said of a resource that a cluster stored and the schema refuses.
const Refused = "this version's CRD refuses it: "

// Refuses returns an error if the schema refuses a resource that was decoded, a pointer to one
// of the types of landwaiter.dev, whole: it must have its spec. The status does not count: others than the resource's owner write it. Nor do
// labels and annotations, which every API server checks by itself.
//
// A typed object does not say whether a field without a pointer was left out or is zero.
// Such a field counts as left out, as it does for package compile.
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

// RefusesText is [Set.Refuses] for a resource as it was written in JSON.
func (s *Set) RefusesText(ctx context.Context, kind string, text []byte) error {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return err
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp") // null in what tools print
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
	return refusal(schema.Validate(ctx, object))
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

// tree returns a value as JSON has it, except that an empty list or mapping stays even if its
// field says omitempty: it is not the same as none, and schemas refuse some.
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
