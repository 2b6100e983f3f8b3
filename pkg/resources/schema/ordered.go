package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// ordered validates values by a schema with the library's validators, one value at a time and in the
// order of fields' names. The library itself goes through fields in random order and compares each
// error with all others, which takes minutes for an object with nothing but mistakes.
type ordered struct{ schema *spec.Schema }

// Validate returns at most [maxFaults] errors.
func (o ordered) Validate(value any, _ ...schemavalidation.ValidationOption) *validate.Result {
	found := &validate.Result{}
	place{of: o.schema, value: value}.check(found)
	found.Errors = found.Errors[:min(len(found.Errors), maxFaults)]
	return found
}

// place is a value with its schema.
type place struct {
	name, path string
	of         *spec.Schema
	value      any
}

// check adds the errors of a value and of its content. A value of the wrong type has only that error.
func (p place) check(found *validate.Result) {
	var below []place
	at := func(name string, of *spec.Schema, path string) validate.ValueValidator {
		return later(func(value any) { below = append(below, place{name, path, of, value}) })
	}
	own := validate.NewSchemaValidator(p.of, nil, p.path, strfmt.Default, func(o *validate.SchemaValidatorOptions) {
		o.NewValidatorForField = func(name string, of *spec.Schema, _ any, path string, _ strfmt.Registry,
			_ ...validate.Option) validate.ValueValidator {
			return at(name, of, path)
		}
		o.NewValidatorForIndex = func(_ int, of *spec.Schema, _ any, path string, _ strfmt.Registry,
			_ ...validate.Option) validate.ValueValidator {
			return at("", of, path)
		}
	}).Validate(p.value).Errors
	if i := slices.IndexFunc(own, isMistyped); i >= 0 {
		own, below = own[i:i+1], nil
	}
	found.Errors = append(found.Errors, own...)
	slices.SortStableFunc(below, func(a, b place) int { return cmp.Compare(a.name, b.name) })
	for _, next := range below {
		if len(found.Errors) >= maxFaults {
			return
		}
		next.check(found)
	}
}

func isMistyped(err error) bool {
	wrong, ok := err.(*errors.Validation) //nolint:errorlint // the library wraps none
	return ok && wrong.Code() == errors.InvalidTypeCode
}

// later queues a value instead of validating it.
type later func(value any)

// SetPath implements [validate.ValueValidator].
func (later) SetPath(string) {}

// Applies implements [validate.ValueValidator].
func (later) Applies(any, reflect.Kind) bool { return true }

// Validate implements [validate.ValueValidator].
func (l later) Validate(value any) *validate.Result {
	l(value)
	return &validate.Result{}
}

// listIndex matches the index of a list in a path.
var listIndex = regexp.MustCompile(`\[(\d+)\]`)

// inOrder sorts errors by their paths, list entries by index, and returns at most the first [maxFaults].
func inOrder(errs field.ErrorList) field.ErrorList {
	keys, apart := make(map[*field.Error]string, len(errs)), strings.NewReplacer(".", "\x00", "[", "\x00")
	for _, e := range errs {
		keys[e] = apart.Replace(listIndex.ReplaceAllStringFunc(e.Field, func(index string) string { return fmt.Sprintf("[%10s", index[1:]) }))
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(keys[a], keys[b]) })
	return errs[:min(len(errs), maxFaults)]
}
