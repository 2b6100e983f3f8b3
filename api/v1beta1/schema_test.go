package v1beta1_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

const (
	crdDir = "../../config/crd"
	// What an API server spends on the CEL rules of one object at most, and on
	// one rule (k8s.io/apiserver/pkg/apis/cel).
	celBudget  = 10_000_000
	celPerCall = 1_000_000
)

// crd is one CustomResourceDefinition as an API server works with it.
type crd struct {
	definition *apiextensions.CustomResourceDefinition
	schema     *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	validator  schemavalidation.SchemaValidator
	rules      *cel.Validator
}

// crds returns what config/crd/kustomization.yaml lists, by kind. Compiling its rules takes
// a third of a second, so tests share it.
func crds(t *testing.T) map[string]*crd {
	t.Helper()
	all, err := definitions()
	require.NoError(t, err)
	return maps.Clone(all)
}

var definitions = sync.OnceValues(func() (map[string]*crd, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	all := map[string]*crd{}
	names, err := kustomization()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		read, err := readCRD(scheme, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[read.definition.Spec.Names.Kind] = read
	}
	return all, nil
})

func readCRD(scheme *runtime.Scheme, name string) (*crd, error) {
	var external apiextensionsv1.CustomResourceDefinition
	text, err := os.ReadFile(filepath.Join(crdDir, name))
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(text, &external); err != nil {
		return nil, err
	}
	scheme.Default(&external)
	c := &crd{definition: &apiextensions.CustomResourceDefinition{}}
	if err := scheme.Convert(&external, c.definition, nil); err != nil {
		return nil, err
	}
	props, err := apiextensions.GetSchemaForVersion(c.definition, v1beta1.Version)
	if err != nil {
		return nil, err
	}
	c.schema = props.OpenAPIV3Schema
	if c.structural, err = structuralschema.NewStructural(c.schema); err != nil {
		return nil, err
	}
	if c.validator, _, err = schemavalidation.NewSchemaValidator(c.schema); err != nil {
		return nil, err
	}
	c.rules = cel.NewValidator(c.structural, true, celPerCall)
	return c, nil
}

func kustomization() ([]string, error) {
	var k struct{ Resources []string }
	text, err := os.ReadFile(filepath.Join(crdDir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	return k.Resources, yaml.Unmarshal(text, &k)
}

// decode reads an object in YAML.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err, text)
	// Whole numbers are integers, as an API server decodes them.
	require.NoError(t, json.Unmarshal(encoded, &object), text)
	return object
}

// check validates an object as an API server does on create with
// fieldValidation=Strict, or on update of an earlier text.
func (c *crd) check(t *testing.T, text string, before ...string) field.ErrorList {
	t.Helper()
	var old any // nil on create
	for _, text := range before {
		earlier := decode(t, text)
		defaulting.Default(earlier, c.structural)
		old = earlier
	}
	object := decode(t, text)
	pruned := runtime.DeepCopyJSON(object)
	unknown := pruning.PruneWithOptions(pruned, c.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	var errs field.ErrorList
	for _, name := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(name), "", "unknown field"))
	}
	defaulting.Default(object, c.structural)
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, c.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	if c.rules != nil {
		found, _ := c.rules.Validate(t.Context(), nil, c.structural, object, old, celBudget)
		errs = append(errs, found...)
	}
	return errs
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// at is the place of an error in the schema: list indexes are left out.
func at(e *field.Error) string {
	if e.Field == "<nil>" {
		return ""
	}
	return listIndex.ReplaceAllString(e.Field, "[]")
}

// walk visits a schema and everything in it.
func walk(path string, s *apiextensions.JSONSchemaProps, visit func(string, *apiextensions.JSONSchemaProps)) {
	visit(path, s)
	for name, property := range s.Properties {
		inner := name
		if path != "" {
			inner = path + "." + name
		}
		walk(inner, &property, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(path+".*", s.AdditionalProperties.Schema, visit)
	}
}

func TestDefinitionsAreValidAndAffordable(t *testing.T) {
	for kind, c := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			definition := c.definition.DeepCopy()
			definition.Status.StoredVersions = []string{v1beta1.Version}
			// This also estimates what the CEL rules cost at worst.
			require.Empty(t, validation.ValidateCustomResourceDefinition(t.Context(), definition))
			require.Equal(t, v1beta1.Group, definition.Spec.Group)
		})
	}
}

func TestEveryKindIsDefinedAsTheTableSays(t *testing.T) {
	all := crds(t)
	scheme := runtime.NewScheme()
	require.NoError(t, v1beta1.AddToScheme(scheme))
	shortNames := map[string]string{}
	for _, kind := range v1beta1.Kinds() {
		c, ok := all[kind.Name]
		require.True(t, ok, "config/crd has no CRD of %s", kind.Name)
		delete(all, kind.Name)
		names := c.definition.Spec.Names
		require.Equal(t, kind.Plural, names.Plural)
		require.Equal(t, kind.Name+"List", names.ListKind)
		scope, category := apiextensions.ClusterScoped, v1beta1.CategoryCluster
		if kind.Namespaced {
			scope, category = apiextensions.NamespaceScoped, v1beta1.CategoryNamespaced
		}
		require.Equal(t, scope, c.definition.Spec.Scope, kind.Name)
		// kubectl get with a category asks for each of its kinds, so a team's category
		// has no kind that a team may not read.
		require.Equal(t, []string{category}, names.Categories, kind.Name)
		require.NotEmpty(t, names.ShortNames, "%s has no short name", kind.Name)
		for _, short := range names.ShortNames {
			require.Empty(t, shortNames[short], "%s is a short name of %s too", short, kind.Name)
			require.True(t, strings.HasPrefix(short, "lw"), "%s: a short name that begins with lw is nobody else's", short)
			shortNames[short] = kind.Name
		}
		object := kind.New()
		for _, made := range []runtime.Object{object, kind.NewList()} {
			kinds, _, err := scheme.ObjectKinds(made)
			require.NoError(t, err)
			require.Contains(t, []string{kind.Name, kind.Name + "List"}, kinds[0].Kind)
		}
		require.NotNil(t, object.CommonStatus())
		found, ok := v1beta1.KindNamed(kind.Name)
		require.True(t, ok)
		require.Equal(t, kind.Plural, found.Plural)
	}
	require.Empty(t, all, "these CRDs are not in the table of kinds")
	_, ok := v1beta1.KindNamed("Bogus")
	require.False(t, ok)
}

func TestKustomizationListsEveryDefinition(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(crdDir, "landwaiter.dev_*.yaml"))
	require.NoError(t, err)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	slices.Sort(found)
	listed, err := kustomization()
	require.NoError(t, err)
	require.Equal(t, found, listed)
}

func TestEveryStringAndListIsBounded(t *testing.T) {
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			switch s.Type {
			case "string":
				require.True(t, s.MaxLength != nil || len(s.Enum) > 0 || path == "spec.cosign.annotations.*", "%s %s has no maxLength", kind, path)
			case "array":
				require.NotNil(t, s.MaxItems, "%s %s has no maxItems", kind, path)
			}
		})
	}
}

// Older Kubernetes refuses a whole CRD for a rule that names a field in a way that CEL reserves
// (kubernetes.io/docs/tasks/extend-kubernetes/custom-resources, "Escaping"), and 1.29 for one that
// adds up a list that it has made, which it takes for one without end.
func TestOlderKubernetesAcceptsTheRules(t *testing.T) {
	for what, example := range map[string]string{
		`\.(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)\b`: "has(self.namespace)",
		`\)\.(sum|min|max|isSorted)\(`: "self.rules.map(r, size(r.images)).sum() < 5",
	} {
		refused := regexp.MustCompile(what)
		require.Regexp(t, refused, example)
		for kind, c := range crds(t) {
			walk("", c.schema, func(path string, s *apiextensions.JSONSchemaProps) {
				for _, rule := range s.XValidations {
					require.NotRegexp(t, refused, rule.Rule, "%s %s", kind, path)
				}
			})
		}
	}
}
