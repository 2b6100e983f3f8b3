// Package schema validates resources as an API server with this version's CRDs does when they are
// created, with the API server's own library: unknown fields, defaults, schema, list types and
// rules in CEL, under the API server's cost budget. A cluster may have older CRDs, which accept
// objects that these refuse. The package does no I/O, does not say which images a resource applies
// to, and never calls an object valid that it could not validate.
package schema

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config/crd"
)

// Set holds the schemas of all kinds. It prepares the schema of a kind for the first object of
// that kind, which takes milliseconds, and drops unused schemas: together they take megabytes. It
// is safe for concurrent use.
type Set struct {
	files func() (map[string]string, error) // by kind
	mu    sync.Mutex
	kinds map[string]*prepared
}

// prepared is the schema of a kind, and whether it was used since the last sweep.
type prepared struct {
	schema func() (*Schema, error)
	used   bool
}

// shared keeps the schemas of CRDs that never change, so that a process prepares each once.
var shared = newSet() //nolint:gochecknoglobals // nobody sees it change

func newSet() *Set {
	return &Set{files: sync.OnceValues(embedded), kinds: map[string]*prepared{}}
}

// Embedded returns the schemas of the CRDs that are part of the program. All callers share them.
func Embedded() *Set { return shared }

// kindOf matches spec.names.kind in a CRD as controller-gen writes it.
var kindOf = regexp.MustCompile(`(?m)^    kind: (\w+)$`)

func embedded() (map[string]string, error) {
	names, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		kind := kindOf.FindSubmatch(text)
		if kind == nil {
			return nil, fmt.Errorf("CRD %s names no kind", name)
		}
		files[string(kind[1])] = name
	}
	return files, nil
}

// Of returns the schema of a kind. It fails for a kind without a CRD.
func (s *Set) Of(kind string) (*Schema, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	file, ok := files[kind]
	if !ok {
		return nil, fmt.Errorf("there is no CRD of kind %s", kind)
	}
	s.mu.Lock()
	if len(s.kinds) == 0 {
		time.AfterFunc(keepUnused, s.sweep)
	}
	p, ok := s.kinds[kind]
	if !ok {
		p = &prepared{schema: sync.OnceValues(func() (*Schema, error) {
			made, err := prepare(file)
			if err != nil {
				return nil, fmt.Errorf("CRD of kind %s: %w", kind, err)
			}
			return made, nil
		})}
		s.kinds[kind] = p
	}
	p.used = true
	s.mu.Unlock()
	return p.schema() // without the lock, so that other kinds do not wait
}

// sweep drops the schemas that were not used since the last sweep, and schedules the next one if
// some are left.
func (s *Set) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, p := range s.kinds {
		if !p.used {
			delete(s.kinds, kind)
		}
		p.used = false
	}
	if len(s.kinds) > 0 {
		time.AfterFunc(keepUnused, s.sweep)
	}
}

// Schema is one CRD.
type Schema struct {
	// Namespaced is the scope of the kind.
	Namespaced bool

	apiVersion string
	structural *schema.Structural
	values     *spec.Schema
	rules      *cel.Validator
}

func prepare(file string) (*Schema, error) {
	text, err := crd.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		return nil, err
	}
	if len(definition.Spec.Versions) != 1 {
		return nil, errors.New("it has several versions")
	}
	version := definition.Spec.Versions[0]
	made := &Schema{apiVersion: definition.Spec.Group + "/" + version.Name,
		Namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped}
	var properties apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &properties,
		nil); err != nil {
		return nil, err
	}
	if made.structural, err = schema.NewStructural(&properties); err != nil {
		return nil, err
	}
	if _, made.values, err = schemavalidation.NewSchemaValidator(&properties); err != nil {
		return nil, err
	}
	made.rules = cel.NewValidator(made.structural, true, celconfig.PerCallLimit)
	return made, nil
}

// Validate does what an API server does on create, which ignores the status. It removes unknown
// fields and fills in defaults, in place. It returns the paths of the unknown fields, sorted and
// without those below a value of the wrong type, and errors in an order that depends on nothing
// but the object.
func (s *Schema) Validate(ctx context.Context, object map[string]any) (unknown []string, errs field.ErrorList) {
	unknown = pruning.PruneWithOptions(object, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	delete(object, "status")
	defaulting.Default(object, s.structural)
	errs = inOrder(validation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: object}, s.Namespaced,
		validation.NameIsDNSSubdomain, field.NewPath("metadata")))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, ordered{s.values})...)
	errs = append(errs, inOrder(listtype.ValidateListSetsAndMaps(nil, s.structural, object))...)
	unknown = slices.DeleteFunc(unknown, func(path string) bool {
		return slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeTypeInvalid && isBelow(path, e.Field) })
	})
	if slices.ContainsFunc(errs, hidesRules) {
		return unknown, errs
	}
	broken, left := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	if left < 0 { // evaluation stops at random rules
		return unknown, append(errs, field.Invalid(nil, "", "its rules cost too much to evaluate"))
	}
	return unknown, append(errs, inOrder(broken)...)
}

func isBelow(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && strings.IndexAny(rest, ".[") == 0
}

// hidesRules reports whether an API server does not evaluate rules after an error.
func hidesRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// Siblings returns the names of the fields in the schema of the object at path, sorted.
func (s *Schema) Siblings(path string) []string {
	at := *s.structural
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, name := range steps[:max(0, len(steps)-1)] {
		below, ok := at.Properties[name]
		switch {
		case ok:
			at = below
		case at.Items != nil:
			at = *at.Items
		default:
			return nil
		}
	}
	return slices.Sorted(maps.Keys(at.Properties))
}
