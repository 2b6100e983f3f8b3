package schema_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// library is a CRD as an API server works with it.
type library struct {
	namespaced bool
	structural *structural.Structural
	validator  schemavalidation.SchemaValidator
	rules      *cel.Validator
}

func newLibrary(t testing.TB, plural string) *library {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../config/crd", "landwaiter.dev_"+plural+".yaml"))
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var external apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(text, &external))
	scheme.Default(&external)
	var definition apiextensions.CustomResourceDefinition
	require.NoError(t, scheme.Convert(&external, &definition, nil))
	properties, err := apiextensions.GetSchemaForVersion(&definition, external.Spec.Versions[0].Name)
	require.NoError(t, err)
	made := &library{namespaced: external.Spec.Scope == apiextensionsv1.NamespaceScoped}
	made.structural, err = structural.NewStructural(properties.OpenAPIV3Schema)
	require.NoError(t, err)
	made.validator, _, err = schemavalidation.NewSchemaValidator(properties.OpenAPIV3Schema)
	require.NoError(t, err)
	made.rules = cel.NewValidator(made.structural, true, celconfig.PerCallLimit)
	return made
}

// validate runs what an API server runs on create, in its order.
func (l *library) validate(ctx context.Context, object map[string]any) (errs field.ErrorList, unknown []string) {
	delete(object, "status")
	unknown = pruning.PruneWithOptions(object, l.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object, l.structural)
	errs = validation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: object}, l.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, l.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, l.structural, object)...)
	if slices.ContainsFunc(errs, func(e *field.Error) bool {
		return slices.Contains([]field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}, e.Type)
	}) {
		return errs, unknown
	}
	broken, _ := l.rules.Validate(ctx, nil, l.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...), unknown
}

// place is somewhere in an object: a key of a map, or an index of a list.
type place struct {
	path string
	get  func() any
	set  func(any)
	drop func() // nil in lists
}

// places lists all places below value.
func places(value any, path string, found []place) []place {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := strings.TrimPrefix(path+"."+name, ".")
			if below == "apiVersion" || below == "kind" || below == "status" {
				continue
			}
			found = append(found, place{below, func() any { return value[name] }, func(v any) { value[name] = v }, func() { delete(value, name) }})
			found = places(value[name], below, found)
		}
	case []any:
		for i := range value {
			below := fmt.Sprintf("%s[%d]", path, i)
			found = append(found, place{below, func() any { return value[i] }, func(v any) { value[i] = v }, nil})
			found = places(value[i], below, found)
		}
	}
	return found
}

func decoded(t require.TestingT, s sample) map[string]any {
	var object map[string]any
	require.NoError(t, utiljson.Unmarshal(s.text, &object))
	return object
}

// values are what mistakes are made of.
func values() []any {
	return []any{nil, "", "x", "*", "**", "system:x", "0s", "5m", strings.Repeat("long ", 1000), int64(0), int64(-1), int64(5), int64(1 << 40), 1.5, true, []any{}, map[string]any{},
		[]any{"a"}, []any{"a", "a"}, []any{"*", "b"}, []any{map[string]any{"name": "x"}}, []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}}, map[string]any{"name": "x"}, map[string]any{"name": "x", "key": "y"},
		map[string]any{"a": "b"}, map[string]any{"inline": "x"}, "Require", "Cosign", "Notation", "Namespace", "ServiceAccount", "2026-12-31T18:00:00Z"}
}

// mistake changes object at one place: to a value of another type or beyond a bound, to what
// another resource has somewhere, by a field that the schema has or does not, or by one less.
func mistake(t *rapid.T, kind *schema.Schema, object map[string]any, others []sample) {
	all := places(object, "", nil)
	if len(all) == 0 {
		return
	}
	at := all[rapid.IntRange(0, len(all)-1).Draw(t, "place")]
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		if at.drop != nil {
			at.drop()
		}
	case 1:
		at.set(runtime.DeepCopyJSONValue(rapid.SampledFrom(values()).Draw(t, "value")))
	case 2:
		from := places(decoded(t, others[rapid.IntRange(0, len(others)-1).Draw(t, "other")]), "", nil)
		at.set(runtime.DeepCopyJSONValue(from[rapid.IntRange(0, len(from)-1).Draw(t, "from")].get()))
	case 3:
		if list, ok := at.get().([]any); ok && len(list) > 0 {
			for range rapid.SampledFrom([]int{1, 2, 70}).Draw(t, "times") {
				list = append(list, runtime.DeepCopyJSONValue(list[0]))
			}
			at.set(list)
		}
	default:
		inner, ok := at.get().(map[string]any)
		if !ok || at.path == "metadata" {
			return
		}
		names := append(kind.Siblings(at.path+".x"), "unknown")
		name := rapid.SampledFrom(names).Draw(t, "name")
		inner[name] = runtime.DeepCopyJSONValue(rapid.SampledFrom(values()).Draw(t, "value"))
		for _, other := range others { // more often than not, a field has what some resource has there
			for _, from := range places(decoded(t, other), "", nil) {
				if strings.HasSuffix(from.path, "."+name) && rapid.Bool().Draw(t, "as there") {
					inner[name] = runtime.DeepCopyJSONValue(from.get())
					return
				}
			}
		}
	}
}

// said lists errors as texts that do not depend on their order.
func said(errs field.ErrorList) map[string]bool {
	texts := map[string]bool{}
	mistyped := map[string]bool{}
	for _, e := range errs {
		if e.Type == field.ErrorTypeTypeInvalid {
			mistyped[e.Field] = true
		}
	}
	for _, e := range errs {
		if e.Type != field.ErrorTypeTypeInvalid && mistyped[e.Field] {
			continue // the library also compares a value of the wrong type with bounds
		}
		if e.Type == field.ErrorTypeTypeInvalid {
			texts[fmt.Sprintf("%s: %s", e.Type, e.Field)] = true // which the library calls by its format, if it has one
			continue
		}
		if detail, of, ok := strings.Cut(strings.TrimPrefix(e.Detail, "Checked value "), " in spec."); ok && e.Field == "<nil>" {
			if !mistyped["spec."+of] {
				texts[fmt.Sprintf("%s: spec.%s: %s", e.Type, of, detail)] = true
			}
			continue
		}
		texts[fmt.Sprintf("%s: %s: %s", e.Type, e.Field, strings.TrimPrefix(e.Detail, e.Field+" in body "))] = true
	}
	return texts
}

// An API server's own library says the same of resources with mistakes, word by word.
func TestTheAPIServersLibraryRefusesTheSame(t *testing.T) {
	set, libraries, all := schema.Embedded(), map[string]*library{}, samples(t)
	for _, kind := range v1beta1.Kinds() {
		libraries[kind.Name] = newLibrary(t, kind.Plural)
	}
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "sample")]
		object := decoded(t, s)
		kind, err := set.Of(s.kind)
		require.NoError(t, err)
		for range rapid.IntRange(1, 4).Draw(t, "mistakes") {
			mistake(t, kind, object, all)
		}
		other := runtime.DeepCopyJSON(object)
		unknown := kind.Unknown(object)
		found := kind.Validate(context.Background(), object)
		want, stray := libraries[s.kind].validate(context.Background(), other)
		require.Equal(t, len(want) == 0, len(found) == 0, "the library: %v\nhere: %v", want, found)
		if schema.Large(object) { // the first error alone is said
			require.Subset(t, slices.Collect(maps.Keys(said(want))), slices.Collect(maps.Keys(said(found))))
		} else {
			require.Equal(t, said(want), said(found))
		}
		for _, path := range unknown {
			require.Contains(t, stray, path)
		}
		if len(found) == 0 {
			require.Equal(t, stray, append([]string(nil), unknown...))
			require.Equal(t, other["spec"], pruned(kind, object)["spec"], "with the same defaults")
		} else {
			refused++
		}
	})
	t.Logf("%d were refused", refused)
}

// pruned returns object without the fields that its schema does not have.
func pruned(kind *schema.Schema, object map[string]any) map[string]any {
	for _, path := range kind.Unknown(object) {
		for _, at := range places(object, "", nil) {
			if at.path == path {
				at.drop()
			}
		}
	}
	return object
}
