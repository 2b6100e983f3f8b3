package schema

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func compiled(t *testing.T, text string) (*node, error) {
	t.Helper()
	var of apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &of))
	env, err := cel.NewEnv(cel.Variable(self, cel.DynType))
	require.NoError(t, err)
	return compiler{env}.node(&of)
}

// What is not validated would be let through, and nobody would see it.
func TestASchemaWithMoreThanIsValidatedIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"{not: {type: string}}":     "Not is not validated here",
		"{oneOf: [{type: string}]}": "OneOf is not validated here",
		"{type: object, properties: {a: {type: array, items: {uniqueItems: true, type: string}}}}":      "a: items: UniqueItems is not validated here",
		"{type: object, x-kubernetes-preserve-unknown-fields: true}":                                    "XPreserveUnknownFields is not validated here",
		"{type: object, minProperties: 1}":                                                              "MinProperties is not validated here",
		"{type: string, format: ipv4}":                                                                  "format ipv4 is not validated here",
		"{type: integer, exclusiveMinimum: true}":                                                       "ExclusiveMinimum is not validated here",
		"{type: integer, enum: [5]}":                                                                    "an enum has what is no string",
		"{type: array}":                                                                                 "it does not say what is in a list or a map",
		"{type: object, additionalProperties: true}":                                                    "it does not say what is in a list or a map",
		"{type: string, pattern: '('}":                                                                  "missing closing )",
		"{type: string, x-kubernetes-validations: [{rule: self != ''}]}":                                "a rule has no message",
		"{type: string, x-kubernetes-validations: [{rule: self.isURL(), message: m}]}":                  "isURL",
		"{type: string, x-kubernetes-validations: [{rule: 'true', message: m, messageExpression: x}]}":  "it has what is not evaluated here",
		"{type: string, x-kubernetes-validations: [{rule: 'true', message: m, optionalOldSelf: true}]}": "it has what is not evaluated here",
		"{anyOf: [{type: string, nullable: true, title: x}]}":                                           "anyOf: Title is not validated here",
	} {
		_, err := compiled(t, text)
		require.ErrorContains(t, err, says, text)
	}
}

func TestRulesAreBoundedInCost(t *testing.T) {
	_, err := compiled(t, "{type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, self.all(c, a + b + c != x)))', message: m}]}")
	require.ErrorContains(t, err, "undeclared reference")
	n, err := compiled(t, "{type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, self.all(c, a + b + c != \"x\")))', message: m}]}")
	require.NoError(t, err)
	list := make([]any, 500)
	for i := range list {
		list[i] = "a"
	}
	j := judgement{left: maxCost}
	n.judge(t.Context(), list, field.NewPath("spec"), &j)
	require.Len(t, j.broken, 1)
	require.Contains(t, j.broken[0].Detail, "cost limit exceeded")
	require.LessOrEqual(t, j.left, uint64(maxCost-maxRuleCost))

	lists := make([]any, 20)
	for i := range lists {
		lists[i] = list
	}
	outer := &node{of: &apiextensionsv1.JSONSchemaProps{Type: "array"}, items: n}
	j = judgement{left: 2 * maxRuleCost} // as after others
	outer.judge(t.Context(), lists, field.NewPath("spec"), &j)
	require.True(t, j.over)
	require.Equal(t, "its rules cost too much to evaluate", j.broken[len(j.broken)-1].Detail)
	require.Less(t, len(j.broken), len(lists))
}

func TestErrorsOfOneObjectAreBounded(t *testing.T) {
	n, err := compiled(t, "{type: array, items: {type: string, minLength: 1}}")
	require.NoError(t, err)
	found := faults{most: maxFaults}
	n.check(make([]any, 10*maxFaults), nil, &found)
	require.Len(t, found.list, maxFaults)
	require.True(t, strings.HasPrefix(found.list[0].Field, "[0]"))
}
