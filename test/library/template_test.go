// Package library tests the ConstraintTemplates against answers that no honest
// provider gives: the real Gatekeeper and provider are in test/e2e.
package library

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// source returns the Rego of a template.
func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../library", name, "template.yaml"))
	require.NoError(t, err)
	var template struct {
		Spec struct {
			Targets []struct {
				Code []struct {
					Engine string
					Source struct{ Version, Rego string }
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &template))
	code := template.Spec.Targets[0].Code[0]
	require.Equal(t, "Rego", code.Engine)
	require.Equal(t, "v1", code.Source.Version)
	return code.Source.Rego
}

// review evaluates the template; answer stands for the provider. It returns the
// messages of the violations, and the keys that were asked for.
func review(t *testing.T, input map[string]any, answer func(keys []string) any) (messages, asked []string) {
	t.Helper()
	builtin := rego.Function1(&rego.Function{Name: "external_data", Decl: types.NewFunction(types.Args(types.A), types.A)},
		func(_ rego.BuiltinContext, request *ast.Term) (*ast.Term, error) {
			var call struct {
				Provider string
				Keys     []string
			}
			if err := ast.As(request.Value, &call); err != nil {
				return nil, err
			}
			asked = call.Keys
			if answer == nil {
				return nil, fmt.Errorf("no provider %s", call.Provider)
			}
			value, err := ast.InterfaceToValue(answer(call.Keys))
			return ast.NewTerm(value), err
		})
	results, err := rego.New(rego.Query("data.verifiedimages.violation"), rego.Module("template.rego", source(t, "verified-images")),
		rego.SetRegoVersion(ast.RegoV1), rego.Input(input), builtin).Eval(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 1)
	violations, ok := results[0].Expressions[0].Value.([]any)
	require.True(t, ok)
	for _, violation := range violations {
		messages = append(messages, fmt.Sprint(violation.(map[string]any)["msg"]))
	}
	return messages, asked
}

type object = map[string]any

// podReview is an admission review of a pod with a specification.
func podReview(namespace string, spec any) object {
	return object{"review": object{"kind": object{"kind": "Pod"}, "namespace": namespace, "operation": "CREATE", "object": object{"spec": spec}}}
}

func containers(images ...string) []any {
	var list []any
	for i, image := range images {
		list = append(list, object{"name": fmt.Sprintf("c%d", i), "image": image})
	}
	return list
}

// answers is what Gatekeeper makes of a provider's answer.
func answers(responses, errors []any, systemError string) object {
	return object{"responses": responses, "errors": errors, "status_code": 200, "system_error": systemError}
}

// passing answers every key with a success.
func passing(keys []string) any {
	var responses []any
	for _, key := range keys {
		responses = append(responses, []any{key, object{"isSuccess": true}})
	}
	return answers(responses, []any{}, "")
}

func TestOnlyASuccessForTheVeryKeyAllows(t *testing.T) {
	const key = "[team-a]r/app:v1"
	good := []any{key, object{"isSuccess": true, "reason": "fine"}}
	for name, c := range map[string]struct {
		answer any
		want   string // in the message; empty: allowed
	}{
		"success":                        {answers([]any{good}, []any{}, ""), ""},
		"success twice":                  {answers([]any{good, good}, []any{}, ""), ""},
		"refused":                        {answers([]any{[]any{key, object{"isSuccess": false, "reason": "nobody signed it"}}}, []any{}, ""), "nobody signed it"},
		"no answer":                      {answers([]any{}, []any{}, ""), "no answer"},
		"an answer for another":          {answers([]any{[]any{"[team-b]r/app:v1", object{"isSuccess": true}}}, []any{}, ""), "no answer"},
		"the untagged key":               {answers([]any{[]any{"r/app:v1", object{"isSuccess": true}}}, []any{}, ""), "no answer"},
		"a text that says true":          {answers([]any{[]any{key, object{"isSuccess": "true"}}}, []any{}, ""), "denied"},
		"a number":                       {answers([]any{[]any{key, object{"isSuccess": 1}}}, []any{}, ""), "denied"},
		"null":                           {answers([]any{[]any{key, nil}}, []any{}, ""), "denied"},
		"a list":                         {answers([]any{[]any{key, []any{true}}}, []any{}, ""), "denied"},
		"plain true":                     {answers([]any{[]any{key, true}}, []any{}, ""), "denied"},
		"no isSuccess":                   {answers([]any{[]any{key, object{"succeeded": true}}}, []any{}, ""), "denied"},
		"an error":                       {answers([]any{}, []any{[]any{key, "not found"}}, ""), "not found"},
		"a success and an error":         {answers([]any{good}, []any{[]any{key, "not found"}}, ""), "not found"},
		"a success and a refusal":        {answers([]any{good, []any{key, object{"isSuccess": false}}}, []any{}, ""), "denied"},
		"a success and no object":        {answers([]any{good, []any{key, nil}}, []any{}, ""), "denied"},
		"a system error":                 {answers([]any{}, []any{}, "the registry is slow"), "the registry is slow"},
		"a system error with a success":  {answers([]any{good}, []any{}, "the registry is slow"), "could not be decided"},
		"a system error that is no text": {object{"responses": []any{good}, "errors": []any{}, "system_error": object{"a": 1}}, "denied"},
		"nothing at all":                 {object{}, "no answer"},
		"no object":                      {"garbage", "no answer"},
		"responses that are no list":     {object{"responses": "garbage", "errors": []any{}, "system_error": ""}, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			messages, asked := review(t, podReview("team-a", object{"containers": containers("r/app:v1")}), func([]string) any { return c.answer })
			require.Equal(t, []string{key}, asked)
			if c.want == "" {
				require.Empty(t, messages)
				return
			}
			require.Len(t, messages, 1)
			require.Contains(t, messages[0], c.want)
			require.Contains(t, messages[0], "containers[0] c0: image r/app:v1 is denied in namespace team-a: ")
		})
	}
	messages, _ := review(t, podReview("team-a", object{"containers": containers("r/app:v1")}), nil)
	require.Len(t, messages, 1, "the call itself fails")
	require.Contains(t, messages[0], "no answer")
}

func TestEveryImageOfEveryKindIsAskedFor(t *testing.T) {
	spec := object{
		"containers": containers("a", "b"), "initContainers": containers("c"), "ephemeralContainers": containers("d"),
		"volumes": []any{object{"name": "v", "image": object{"reference": "e"}}, object{"name": "other", "emptyDir": object{}}},
	}
	template := object{"template": object{"spec": spec}}
	for kind, where := range map[string]any{
		"Pod": spec, "Deployment": template, "ReplicaSet": template, "StatefulSet": template, "DaemonSet": template,
		"ReplicationController": template, "Job": template, "CronJob": object{"jobTemplate": object{"spec": template}},
	} {
		input := podReview("team-a", where)
		input["review"].(object)["kind"] = object{"kind": kind}
		messages, asked := review(t, input, passing)
		require.Empty(t, messages, kind)
		require.Equal(t, []string{"[team-a]a", "[team-a]b", "[team-a]c", "[team-a]d", "[team-a]e"}, asked, kind)
		messages, _ = review(t, input, func([]string) any { return answers([]any{}, []any{}, "") })
		require.Len(t, messages, 5, kind)
	}
}

func TestWhatCannotBeAskedIsDenied(t *testing.T) {
	good := object{"containers": containers("r/app:v1")}
	without := func(field string) object {
		input := podReview("team-a", good)
		delete(input["review"].(object), field)
		return input
	}
	for name, c := range map[string]struct {
		input object
		want  string
	}{
		"empty namespace":      {podReview("", good), "without a namespace"},
		"no namespace":         {without("namespace"), "without a namespace"},
		"no object":            {without("object"), "cannot find the pods"},
		"no specification":     {podReview("team-a", nil), "cannot find the pods"},
		"no containers":        {podReview("team-a", object{}), "there is no image"},
		"containers, no list":  {podReview("team-a", object{"containers": "garbage"}), "there is no image"},
		"unknown kind":         {object{"review": object{"kind": object{"kind": "Rollout"}, "namespace": "team-a", "object": object{"spec": good}}}, "cannot find the pods of kind Rollout"},
		"container, no image":  {podReview("team-a", object{"containers": []any{object{"name": "c"}}}), "no image"},
		"container, empty":     {podReview("team-a", object{"containers": containers("")}), "no image"},
		"container, no text":   {podReview("team-a", object{"containers": []any{object{"name": "c", "image": 7}}}), "no image"},
		"volume, no reference": {podReview("team-a", object{"containers": containers("r/app:v1"), "volumes": []any{object{"name": "v", "image": object{}}}}), "volumes[0] v has no image"},
	} {
		t.Run(name, func(t *testing.T) {
			messages, _ := review(t, c.input, passing)
			require.NotEmpty(t, messages)
			require.Contains(t, strings.Join(messages, "\n"), c.want)
		})
	}
}

func TestDeletingIsNotDenied(t *testing.T) {
	input := podReview("team-a", object{"containers": containers("r/app:v1")})
	input["review"].(object)["operation"] = "DELETE"
	messages, _ := review(t, input, func([]string) any { return answers([]any{}, []any{}, "") })
	require.Empty(t, messages)
}

func TestExemptImagesAreExactOrBelowAPath(t *testing.T) {
	for image, exempt := range map[string]bool{
		"r.example.com/mirror/app:v1": true, "r.example.com/mirror/a/b@sha256:1": true, "k8s.gcr.io/pause:3": true,
		"r.example.com/mirror": false, "r.example.com/mirrored/app": false, "r.example.com.evil.org/mirror/app": false,
		"evil.org/r.example.com/mirror/app": false, "k8s.gcr.io/pause:31": false, "[team-b]r.example.com/mirror/app": false,
	} {
		input := podReview("team-a", object{"containers": containers(image)})
		input["parameters"] = object{"exemptImages": []any{"r.example.com/mirror/*", "k8s.gcr.io/pause:3"}}
		messages, _ := review(t, input, func([]string) any { return answers([]any{}, []any{}, "") })
		require.Equal(t, exempt, len(messages) == 0, image)
	}
}
