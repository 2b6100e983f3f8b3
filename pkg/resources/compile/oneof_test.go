package compile_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// Whoever adds a kind of verifier or source to the types and forgets the compiler
// is told here: a field that is not looked at would be one that is ignored.
func TestCompileKnowsEveryOneOfField(t *testing.T) {
	compileVerifier := func(spec v1beta1.VerifierSpec) []resource.Problem {
		// The type is the field's name; with nothing set it is Cosign.
		v := v1beta1.Verifier{Spec: spec}
		v.Spec.Type = v1beta1.VerifierTypeCosign
		for name, set := range map[v1beta1.VerifierType]bool{v1beta1.VerifierTypeNotation: spec.Notation != nil,
			v1beta1.VerifierTypeAttestation: spec.Attestation != nil} {
			if set {
				v.Spec.Type = name
			}
		}
		v.Name, v.Namespace = "v", "team-a"
		_, problems := written.Compiled(resource.Objects{Resources: []v1beta1.Object{&v}})
		return problems
	}
	compileSource := func(source v1beta1.TrustSource) []resource.Problem {
		s := v1beta1.TrustStore{Spec: v1beta1.TrustStoreSpec{Type: v1beta1.TrustStoreTypePublicKeys, Source: source}}
		s.Name, s.Namespace = "s", "team-a"
		_, problems := written.Compiled(resource.Objects{Resources: []v1beta1.Object{&s}})
		return problems
	}
	compileBundle := func(bundle v1beta1.CABundle) []resource.Problem {
		s := v1beta1.Store{Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}, CABundle: &bundle}}
		s.Name, s.Namespace = "s", "team-a"
		_, problems := written.Compiled(resource.Objects{Resources: []v1beta1.Object{&s}})
		return problems
	}
	compileRequirement := func(r v1beta1.Requirement) []resource.Problem {
		p := v1beta1.VerificationPolicy{
			Spec: v1beta1.VerificationPolicySpec{Rules: []v1beta1.PolicyRule{{Images: []string{"**"}, Require: []v1beta1.Requirement{r}}}}}
		p.Name, p.Namespace = "p", "team-a"
		_, problems := written.Compiled(resource.Objects{Resources: []v1beta1.Object{&p}})
		return problems
	}
	eachField(t, []string{"Images", "Type"}, compileVerifier)
	eachField(t, nil, compileSource)
	eachField(t, nil, compileBundle)
	eachField(t, []string{"AtLeast"}, compileRequirement)
}

// eachField sets one field at a time: whatever the compiler says of it, it must
// not be that none was set.
func eachField[T any](t *testing.T, besides []string, compile func(T) []resource.Problem) {
	t.Helper()
	var none T
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		isBesides := false
		for _, name := range besides {
			isBesides = isBesides || name == field.Name
		}
		if isBesides {
			continue
		}
		value := none
		set(reflect.ValueOf(&value).Elem().FieldByIndex(field.Index))
		said := ""
		for _, problem := range compile(value) {
			said += problem.Message
		}
		for _, ignored := range []string{"spec has nothing that is known here", "spec.source has nothing", "caBundle has nothing", "require[0] has nothing"} {
			require.NotContains(t, said, ignored, "%s.%s is ignored, or it is no member of the one-of and belongs to besides", reflect.TypeFor[T]().Name(), field.Name)
		}
	}
	said := compile(none)
	require.NotEmpty(t, said, "%s with nothing set", reflect.TypeFor[T]().Name())
}

// set gives a field a value that is not zero.
func set(field reflect.Value) {
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.String:
		field.SetString("x")
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	default:
		panic("a one-of field of kind " + field.Kind().String())
	}
}
