package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

const (
	crdDir    = "../../config/crd"
	sampleDir = "../../config/samples"
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

// crds reads what config/crd/kustomization.yaml lists, by kind.
func crds(t *testing.T) map[string]*crd {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	all := map[string]*crd{}
	for _, name := range kustomization(t) {
		var external apiextensionsv1.CustomResourceDefinition
		text, err := os.ReadFile(filepath.Join(crdDir, name))
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(text, &external), name)
		scheme.Default(&external)
		c := &crd{definition: &apiextensions.CustomResourceDefinition{}}
		require.NoError(t, scheme.Convert(&external, c.definition, nil))
		props, err := apiextensions.GetSchemaForVersion(c.definition, v1alpha1.Version)
		require.NoError(t, err)
		c.schema = props.OpenAPIV3Schema
		c.structural, err = structuralschema.NewStructural(c.schema)
		require.NoError(t, err)
		c.validator, _, err = schemavalidation.NewSchemaValidator(c.schema)
		require.NoError(t, err)
		c.rules = cel.NewValidator(c.structural, true, celPerCall)
		all[external.Spec.Names.Kind] = c
	}
	return all
}

func kustomization(t *testing.T) []string {
	t.Helper()
	var k struct{ Resources []string }
	text, err := os.ReadFile(filepath.Join(crdDir, "kustomization.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &k))
	return k.Resources
}

// check validates an object as an API server does on create with
// fieldValidation=Strict.
func (c *crd) check(t *testing.T, text string) field.ErrorList {
	t.Helper()
	var object map[string]any
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err, text)
	// Whole numbers are integers, as an API server decodes them.
	require.NoError(t, json.Unmarshal(encoded, &object), text)
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
		found, _ := c.rules.Validate(t.Context(), nil, c.structural, object, nil, celBudget)
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
	all := crds(t)
	require.Len(t, all, 9)
	for kind, c := range all {
		t.Run(kind, func(t *testing.T) {
			definition := c.definition.DeepCopy()
			definition.Status.StoredVersions = []string{v1alpha1.Version}
			// This also estimates what the CEL rules cost at worst.
			require.Empty(t, validation.ValidateCustomResourceDefinition(t.Context(), definition))
			require.Equal(t, v1alpha1.Group, definition.Spec.Group)
			require.Contains(t, definition.Spec.Names.Categories, "landwaiter")
		})
	}
}

func TestKustomizationListsEveryDefinition(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(crdDir, "landwaiter.dev_*.yaml"))
	require.NoError(t, err)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	slices.Sort(found)
	require.Equal(t, found, kustomization(t))
}

func TestTwinsShareTheirSpecification(t *testing.T) {
	all := crds(t)
	for kind, extra := range map[string]string{"Verifier": "", "Store": "insecurePlainHTTP", "TrustStore": "", "VerificationPolicy": "enforcement"} {
		own, twin := all[kind].schema.Properties["spec"], all["Cluster"+kind].schema.Properties["spec"]
		delete(twin.Properties, extra)
		require.Equal(t, own.Properties, twin.Properties, kind)
		require.Equal(t, own.XValidations, twin.XValidations, kind)
	}
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

func TestSamplesAreValid(t *testing.T) {
	all := crds(t)
	files, err := filepath.Glob(filepath.Join(sampleDir, "*.yaml"))
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
			var head struct{ APIVersion, Kind string }
			require.NoError(t, yaml.Unmarshal([]byte(document), &head))
			if head.APIVersion == "v1" {
				continue // core/v1 is checked where samples are loaded
			}
			require.Contains(t, all, head.Kind, name)
			require.Empty(t, all[head.Kind].check(t, document), "%s: %s", name, document)
		}
	}
}
