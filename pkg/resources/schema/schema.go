// Package schema validates resources as an API server with this version's CRDs does: schema,
// list types and rules in CEL, under the API server's cost budget. A cluster may have older
// CRDs, which let through what these refuse. The package does no I/O, does not say which
// images a resource is about, and refuses to call an object valid that it could not validate.
package schema

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config/crd"
)

// Set holds the schemas of all kinds. It prepares the schema of a kind when the first object
// of the kind comes, which takes tens of milliseconds, or all of them by [Set.Prepare]. Several goroutines may use it.
type Set struct {
	texts func() (map[string][]byte, error) // CRDs by kind
	mu    sync.Mutex
	kinds map[string]func() (*Schema, error)
}

// New returns the schemas of the CRDs that are part of the program.
func New() *Set {
	return &Set{texts: sync.OnceValues(embedded), kinds: map[string]func() (*Schema, error){}}
}

// kindOf matches spec.names.kind in a CRD as controller-gen writes it.
var kindOf = regexp.MustCompile(`(?m)^    kind: (\w+)$`)

func embedded() (map[string][]byte, error) {
	names, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for _, name := range names {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		kind := kindOf.FindSubmatch(text)
		if kind == nil {
			return nil, fmt.Errorf("CRD %s names no kind", name)
		}
		texts[string(kind[1])] = text
	}
	return texts, nil
}

// Of returns the schema of a kind. It fails for a kind without a CRD.
func (s *Set) Of(kind string) (*Schema, error) {
	texts, err := s.texts()
	if err != nil {
		return nil, err
	}
	text, ok := texts[kind]
	if !ok {
		return nil, fmt.Errorf("there is no CRD of kind %s", kind)
	}
	s.mu.Lock()
	prepared, ok := s.kinds[kind]
	if !ok {
		prepared = sync.OnceValues(func() (*Schema, error) {
			made, err := prepare(text)
			if err != nil {
				return nil, fmt.Errorf("CRD of kind %s: %w", kind, err)
			}
			return made, nil
		})
		s.kinds[kind] = prepared
	}
	s.mu.Unlock()
	return prepared() // without the lock: other kinds do not wait
}

// Prepare prepares the schemas of all kinds, so that the first object of none waits.
func (s *Set) Prepare() error {
	texts, err := s.texts()
	if err != nil {
		return err
	}
	for kind := range texts {
		if _, err := s.Of(kind); err != nil {
			return err
		}
	}
	return nil
}

// Schema is one CRD as an API server works with it.
type Schema struct {
	// Namespaced says the scope of the kind.
	Namespaced bool

	apiVersion string
	structural *structural.Structural
	validator  schemavalidation.SchemaValidator
	rules      *cel.Validator
}

func prepare(text []byte) (*Schema, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &external); err != nil {
		return nil, err
	}
	scheme.Default(&external)
	var definition apiextensions.CustomResourceDefinition
	if err := scheme.Convert(&external, &definition, nil); err != nil {
		return nil, err
	}
	if len(external.Spec.Versions) != 1 {
		return nil, errors.New("it has several versions")
	}
	properties, err := apiextensions.GetSchemaForVersion(&definition, external.Spec.Versions[0].Name)
	if err != nil {
		return nil, err
	}
	made := &Schema{apiVersion: external.Spec.Group + "/" + external.Spec.Versions[0].Name, Namespaced: external.Spec.Scope == apiextensionsv1.NamespaceScoped}
	if made.structural, err = structural.NewStructural(properties.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if made.validator, _, err = schemavalidation.NewSchemaValidator(properties.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	made.rules = cel.NewValidator(made.structural, true, celconfig.PerCallLimit)
	return made, nil
}

// Validate runs what an API server runs on create, in its order. It prunes object and fills in
// defaults, in place. Of a large object that is beyond a bound it returns the first error alone.
func (s *Schema) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	pruning.Prune(object, s.structural, true)
	if err := s.firstBeyond(object); err != nil {
		return field.ErrorList{err}
	}
	defaulting.Default(object, s.structural)
	errs := validation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: object}, s.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, s.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if s.rules == nil || slices.ContainsFunc(errs, hidesRules) {
		return errs
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// hidesRules reports whether an API server does not evaluate rules after an error.
func hidesRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// Unknown returns the paths of the fields of object that the schema does not have. It ignores
// what is below a node of the wrong type.
func (s *Schema) Unknown(object map[string]any) []string {
	return pruning.PruneWithOptions(wellTyped(runtime.DeepCopyJSON(object), s.structural), s.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Siblings returns the names of the fields that the schema has where path ends, sorted.
func (s *Schema) Siblings(path string) []string {
	at := s.structural
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, name := range steps[:max(0, len(steps)-1)] {
		next, ok := at.Properties[name]
		switch {
		case ok:
			at = &next
		case at.Items != nil:
			at = at.Items
		default:
			return nil
		}
	}
	var names []string
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
