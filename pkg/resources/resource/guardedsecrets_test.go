package resource_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// namesIn returns the program that a guardrail finds the names of Secrets with.
func namesIn(t *testing.T, guardrail string) cel.Program {
	t.Helper()
	text, err := config.Files.ReadFile("guardrails/guardrails.yaml")
	require.NoError(t, err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		var p admissionv1.ValidatingAdmissionPolicy
		require.NoError(t, yaml.Unmarshal([]byte(document), &p))
		if p.Kind != "ValidatingAdmissionPolicy" || p.Name != "landwaiter-"+guardrail {
			continue
		}
		for _, v := range p.Spec.Variables {
			if v.Name == "names" {
				env, err := cel.NewEnv(cel.Variable("params", cel.DynType))
				require.NoError(t, err)
				ast, issues := env.Compile(v.Expression)
				require.NoError(t, issues.Err())
				program, err := env.Program(ast)
				require.NoError(t, err)
				return program
			}
		}
	}
	require.Fail(t, "there is no such guardrail", guardrail)
	return nil
}

// A Secret that the table of fields has, and a guardrail has not, could be written by the controller of another
// namespace. Pull secrets of an account are no field.
func TestGuardrailsKnowEverySecretThatAResourceNames(t *testing.T) {
	found := 0
	for guardrail, kind := range map[string]string{"secrets-of-stores": v1beta1.KindStore, "secrets-of-truststores": v1beta1.KindTrustStore} {
		program := namesIn(t, guardrail)
		of, ok := v1beta1.KindNamed(kind)
		require.True(t, ok)
		object := of.New()
		eachReference(reflect.ValueOf(object).Elem().FieldByName("Spec"), "spec", func(path string, name reflect.Value) {
			name.SetString("it")
			defer name.SetString("")
			for _, f := range resource.FieldsOf(object) {
				if f.Name != "it" || f.Kind != resource.KindSecret {
					continue
				}
				found++
				params, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
				require.NoError(t, err)
				names, _, err := program.Eval(map[string]any{"params": params})
				require.NoError(t, err, path)
				listed, err := names.ConvertToNative(reflect.TypeFor[[]string]())
				require.NoError(t, err, path)
				require.Contains(t, listed, "it", "%s: guardrail %s does not know it", path, guardrail)
			}
		})
	}
	require.Equal(t, 13, found)
}

// Other kinds name none, and would need a guardrail.
func TestOnlyStoresAndTrustStoresNameSecrets(t *testing.T) {
	for _, kind := range v1beta1.Kinds() {
		if kind.Name == v1beta1.KindTenant || strings.HasSuffix(kind.Name, "Store") {
			continue
		}
		object := kind.New()
		eachReference(reflect.ValueOf(object).Elem().FieldByName("Spec"), "spec", func(path string, name reflect.Value) {
			name.SetString("it")
			defer name.SetString("")
			for _, f := range resource.FieldsOf(object) {
				require.NotEqual(t, resource.KindSecret, f.Kind, "%s %s", kind.Name, path)
			}
		})
	}
}
