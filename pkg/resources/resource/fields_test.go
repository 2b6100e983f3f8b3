package resource_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// references are the types of fields that name an object or a trust store.
func references() map[reflect.Type]bool {
	return map[reflect.Type]bool{reflect.TypeFor[v1beta1.Reference](): true, reflect.TypeFor[v1beta1.KeyReference](): true,
		reflect.TypeFor[v1beta1.TrustStoreRef](): true}
}

// eachReference calls do with every field below value that names something, one after the other
// set, and with its path.
func eachReference(value reflect.Value, path string, do func(path string, name reflect.Value)) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		eachReference(value.Elem(), path, do)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		eachReference(value.Index(0), path+"[0]", do)
	case reflect.Struct:
		if references()[value.Type()] {
			do(path, value.FieldByName("Name"))
			return
		}
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			below := path
			if name != "" {
				below += "." + name
			}
			eachReference(value.Field(i), below, do)
		}
	default:
		return
	}
	value.SetZero() // a one-of has one member
}

// A reference that the table does not know would not be watched, would be sent anywhere in a
// preview, and would count for nobody who looks at permissions.
func TestTheTableHasEveryReferenceOfTheAPI(t *testing.T) {
	found := 0
	for _, kind := range v1beta1.Kinds() {
		if kind.Name == v1beta1.KindTenant {
			continue // what it references is for Flux: Landwaiter never reads it
		}
		object := kind.New()
		eachReference(reflect.ValueOf(object).Elem().FieldByName("Spec"), "spec", func(path string, name reflect.Value) {
			found++
			name.SetString("it")
			defer name.SetString("")
			var listed []string
			for _, f := range resource.FieldsOf(object) {
				if f.Name == "it" {
					require.NotZero(t, f.Use, "%s: what is %s for?", kind.Name, path)
					listed = append(listed, f.Path)
				}
			}
			require.Equal(t, []string{path}, listed, "%s: FieldsOf has to list %s, once and with its path", kind.Name, path)
		})
	}
	require.Greater(t, found, 50)
}

func TestTheTableHasHostsAndVerifiers(t *testing.T) {
	store := &v1beta1.Store{Spec: v1beta1.StoreSpec{Registries: []string{"a"}, Mirrors: []v1beta1.Mirror{{Host: "b"}},
		Evidence: &v1beta1.Evidence{Repositories: []v1beta1.EvidenceRepository{{Repository: "c/d"}}}}}
	require.Equal(t, []resource.Field{{Path: "spec.registries[0]", Use: resource.Registry, Name: "a"}, {Path: "spec.mirrors[0]", Use: resource.Place, Name: "b"},
		{Path: "spec.evidence.repositories[0]", Use: resource.Place, Name: "c/d"}}, resource.FieldsOf(store))
	policy := &v1beta1.VerificationPolicy{
		Spec: v1beta1.VerificationPolicySpec{Rules: []v1beta1.PolicyRule{{Require: []v1beta1.Requirement{{AnyOf: []string{"x"}}, {AllOf: []string{"y"}}}}}}}
	require.Equal(t, []resource.Field{{Path: "spec.rules[0].require[0]", Use: resource.Required, Kind: "Verifier", Name: "x"},
		{Path: "spec.rules[0].require[1]", Use: resource.Required, Kind: "Verifier", Name: "y"}}, resource.FieldsOf(policy))
}
