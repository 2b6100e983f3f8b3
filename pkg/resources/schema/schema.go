// Package schema validates resources as an API server with this version's CRDs does when they
// are created: schema, list types and rules in CEL, under the API server's cost budget. A cluster
// may have older CRDs, which let through what these refuse. It knows as much of OpenAPI as the
// CRDs use, and refuses a CRD with more; its tests compare it with the API server's own library,
// which is fifty packages and ten megabytes of memory that no admission needs. The package does
// no I/O, does not say which images a resource is about, and refuses to call an object valid that
// it could not validate.
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

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
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

// shared keeps what is prepared from CRDs that never change, so that each is prepared once in a process.
var shared = &Set{texts: sync.OnceValues(embedded), kinds: map[string]func() (*Schema, error){}} //nolint:gochecknoglobals // nobody sees it change

// Embedded returns the schemas of the CRDs that are part of the program. All callers share them.
func Embedded() *Set { return shared }

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

// Schema is one CRD.
type Schema struct {
	// Namespaced says the scope of the kind.
	Namespaced bool

	apiVersion string
	root       *node
}

func prepare(text []byte) (*Schema, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		return nil, err
	}
	if len(definition.Spec.Versions) != 1 {
		return nil, errors.New("it has several versions")
	}
	version := definition.Spec.Versions[0]
	env, err := cel.NewEnv(cel.Variable(self, cel.DynType))
	if err != nil {
		return nil, err
	}
	root, err := compiler{env}.node(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &Schema{apiVersion: definition.Spec.Group + "/" + version.Name, Namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped, root: root}, nil
}

// Validate runs what an API server runs on create, which ignores the status. It fills in
// defaults, in place. It returns at most [maxFaults] errors, and of a large object the first alone.
func (s *Schema) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	delete(object, "status")
	s.root.complete(object)
	errs := validation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: object}, s.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	found := faults{most: maxFaults}
	if count(object) > manyValues {
		found.most = 1
	}
	s.root.check(object, nil, &found)
	errs = append(errs, found.list...)
	if slices.ContainsFunc(errs, hidesRules) {
		return errs
	}
	judge := judgement{left: maxCost}
	s.root.judge(ctx, object, nil, &judge)
	return append(errs, judge.broken...)
}

// hidesRules reports whether an API server does not evaluate rules after an error.
func hidesRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// Unknown returns the paths of the fields of object that the schema does not have, sorted. It
// ignores what is below a node of the wrong type, and metadata.
func (s *Schema) Unknown(object map[string]any) []string {
	var found []string
	for name, value := range object {
		switch below, ok := s.root.properties[name]; {
		case name == "metadata":
		case ok:
			found = below.unknown(value, name, found)
		case name != "apiVersion" && name != "kind":
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// Siblings returns the names of the fields that the schema has where path ends, sorted.
func (s *Schema) Siblings(path string) []string {
	at := s.root
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, name := range steps[:max(0, len(steps)-1)] {
		switch {
		case at.properties[name] != nil:
			at = at.properties[name]
		case at.items != nil:
			at = at.items
		default:
			return nil
		}
	}
	return at.names
}
