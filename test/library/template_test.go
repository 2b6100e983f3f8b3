// Package library tests the ConstraintTemplates against answers that no honest
// provider gives: the real Gatekeeper and provider are in test/admission.
package library

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// source returns the Rego of a template.
func source(t testing.TB, name string) string {
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

// provider answers the keys that a template asks about; its errors are those of
// the call itself.
type provider func(keys []string) (any, error)

// providerKey is where a review finds its providers.
type providerKey struct{}

// providers answer by name, as Gatekeeper's Provider objects do.
type providers func(name string, keys []string) (any, error)

// The Provider objects that there are.
const admissionProvider, auditProvider = "landwaiter-verdict", "landwaiter-audit"

// missingProvider is what Gatekeeper says of a Provider object that it does not know.
const missingProvider = "key is not found in provider cache"

// compile prepares Rego whose provider is the one in the evaluation's context.
func compile(ctx context.Context, modules ...func(*rego.Rego)) (rego.PreparedEvalQuery, error) {
	return compileFor(ctx, "verifiedimages", modules...)
}

// compileFor does the same for the violations of a package.
func compileFor(ctx context.Context, name string, modules ...func(*rego.Rego)) (rego.PreparedEvalQuery, error) {
	// Gatekeeper's builtin is memoized as well.
	builtin := rego.Function1(&rego.Function{Name: "external_data", Decl: types.NewFunction(types.Args(types.A), types.A), Memoize: true},
		func(c rego.BuiltinContext, request *ast.Term) (*ast.Term, error) {
			var call externaldata.RegoRequest
			if err := ast.As(request.Value, &call); err != nil {
				return nil, fmt.Errorf("read the request: %w", err)
			}
			answer, ok := c.Context.Value(providerKey{}).(providers)
			if !ok {
				return nil, errors.New("no provider")
			}
			if call.ProviderName != admissionProvider && call.ProviderName != auditProvider {
				return externaldata.HandleError(http.StatusBadRequest, errors.New(missingProvider))
			}
			answered, err := answer(call.ProviderName, call.Keys)
			if err != nil {
				return nil, err
			}
			if response, ok := answered.(*externaldata.ProviderResponse); ok {
				return externaldata.PrepareRegoResponse(externaldata.NewRegoResponse(http.StatusOK, response))
			}
			value, err := ast.InterfaceToValue(answered)
			return ast.NewTerm(value), err
		})
	query, err := rego.New(append(modules, rego.Query("data."+name+".violation"), rego.SetRegoVersion(ast.RegoV1), builtin)...).PrepareForEval(ctx)
	if err != nil {
		return query, fmt.Errorf("compile: %w", err)
	}
	return query, nil
}

// review evaluates a template. It returns the messages of the violations as
// Gatekeeper sorts them, and the keys that were asked about, those of audits behind
// the name of their provider; nil if none were.
func review(ctx context.Context, query rego.PreparedEvalQuery, input any, answer provider) (messages, asked []string, err error) {
	ctx = context.WithValue(ctx, providerKey{}, providers(func(name string, keys []string) (any, error) {
		for _, key := range keys {
			if name == auditProvider {
				key = name + " " + key
			}
			asked = append(asked, key)
		}
		if answer == nil {
			return nil, errors.New("no provider")
		}
		return answer(keys)
	}))
	given := rego.EvalInput(input)
	if parsed, ok := input.(ast.Value); ok {
		given = rego.EvalParsedInput(parsed)
	}
	results, err := query.Eval(ctx, given)
	if err != nil {
		return nil, nil, fmt.Errorf("evaluate: %w", err)
	}
	if len(results) != 1 {
		return nil, nil, errors.New("the template says nothing")
	}
	violations, ok := results[0].Expressions[0].Value.([]any)
	if !ok {
		return nil, nil, errors.New("the violations are no set")
	}
	for _, violation := range violations {
		violation, ok := violation.(object)
		if !ok {
			return nil, nil, fmt.Errorf("the violation is a %T", violation)
		}
		messages = append(messages, fmt.Sprint(violation["msg"]))
	}
	return messages, asked, nil
}

// podReview is the admission review of a new pod.
func podReview(namespace string, spec any) object {
	return kindReview("Pod", namespace, object{"spec": spec})
}

func kindReview(kind, namespace string, reviewed object) object {
	return object{"review": object{"kind": object{"kind": kind}, "namespace": namespace, "operation": "CREATE", "object": reviewed, "oldObject": nil}}
}

// updating turns the review of a new object into that of a changed one.
func updating(input object, old any) object {
	review := input["review"].(object) //nolint:forcetypeassert // kindReview made it
	review["operation"], review["oldObject"] = "UPDATE", old
	return input
}

// with sets the parameters of the constraint.
func with(input, parameters object) object {
	input["parameters"] = parameters
	return input
}

func containers(images ...string) []any {
	var list []any
	for i, image := range images {
		list = append(list, object{"name": fmt.Sprintf("c%d", i), "image": image})
	}
	return list
}

// answers is what Gatekeeper makes of a provider's answer.
func answers(responses, errors []any, systemError any) object {
	return object{"responses": responses, "errors": errors, "status_code": 200, "system_error": systemError}
}

// says is a provider that gives one answer to everything.
func says(answer any) provider { return func([]string) (any, error) { return answer, nil } }

// passing answers each key with a success, and denying with a refusal.
func passing(keys []string) (any, error) { return each(keys, object{"isSuccess": true}), nil }

func denying(keys []string) (any, error) {
	return each(keys, object{"isSuccess": false, "reason": "nobody signed it", "traceID": "4711"}), nil
}

func each(keys []string, value any) object {
	responses := []any{}
	for _, key := range keys {
		responses = append(responses, []any{key, value})
	}
	return answers(responses, []any{}, "")
}
