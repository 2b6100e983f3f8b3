package library

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/stretchr/testify/require"
)

// denied says whether a review is denied. That a template says nothing is an error.
func denied(t *testing.T, e evaluator, input object, inventory storage.Store) bool {
	t.Helper()
	messages, err := e.messages(t.Context(), ast.MustInterfaceToValue(input), inventory)
	require.NoError(t, err)
	for _, message := range messages {
		require.NotContains(t, message, "\n")
		require.NotEmpty(t, message)
	}
	return len(messages) > 0
}

// changed is a copy of a review in which one thing differs.
func changed(t *testing.T, input object, change func(input, review object)) object {
	t.Helper()
	made := copiedObject(t, input)
	review, ok := made["review"].(object)
	require.True(t, ok)
	change(made, review)
	return made
}

// Whatever is lost on the way to a template, it does not allow what it denied.
func TestWhatIsUnknownNeverAllows(t *testing.T) {
	labelled := func(metadata any) func(object, object) {
		return func(_, review object) { review["namespaceObject"] = object{"metadata": metadata} }
	}
	lost := map[string]func(input, review object){
		"the namespace":                func(_, review object) { delete(review, "namespaceObject") },
		"a null namespace":             func(_, review object) { review["namespaceObject"] = nil },
		"no metadata of the namespace": func(_, review object) { review["namespaceObject"] = object{} },
		"null metadata":                labelled(nil),
		"no labels":                    labelled(object{}),
		"null labels":                  labelled(object{"labels": nil}),
		"labels of another type":       labelled(object{"labels": []any{"landwaiter.dev/tenant"}}),
		"no name of a namespace":       func(_, review object) { delete(review, "namespace") },
		"no user":                      func(_, review object) { delete(review, "userInfo") },
		"a null user":                  func(_, review object) { review["userInfo"] = nil },
	}
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			t.Parallel()
			e, err := newEvaluator(s.parse(t))
			require.NoError(t, err)
			empty := stored(object{})
			for _, c := range s.cases(t) {
				if !denied(t, e, c.input, c.inventory) {
					continue
				}
				for name, lose := range lost {
					require.True(t, denied(t, e, changed(t, c.input, lose), empty), "%s: allowed with %s", c.name, name)
				}
			}
		})
	}
}

// An update without its old object is judged as a creation, and deleting is always allowed.
func TestAnUpdateWithoutItsOldObjectIsJudgedAsACreation(t *testing.T) {
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			t.Parallel()
			e, err := newEvaluator(s.parse(t))
			require.NoError(t, err)
			for _, c := range s.cases(t) {
				ask := func(operation string, old any) object {
					return changed(t, c.input, func(_, review object) { review["operation"], review["oldObject"] = operation, old })
				}
				if c.twin {
					continue
				}
				created := denied(t, e, ask("CREATE", nil), c.inventory)
				for name, old := range map[string]any{"null": nil, "a text": "garbage", "a list": []any{}, "an object without anything": object{}} {
					require.Equal(t, created, denied(t, e, ask("UPDATE", old), c.inventory), "%s: the old object is %s", c.name, name)
				}
				require.False(t, denied(t, e, ask("DELETE", nil), c.inventory), "%s: deleting", c.name)
				same := ask("UPDATE", c.input["review"].(object)["object"]) //nolint:forcetypeassert // reviewOf made it
				require.False(t, denied(t, e, same, c.inventory), "%s: an update that changes nothing", c.name)
			}
		})
	}
}

// edges evaluates a case with each field of its object, and of its review, set to null, and says
// what comes of it.
func edges(t *testing.T, e evaluator, c testCase) []string {
	t.Helper()
	var found []string
	say := func(what string, input object) {
		word := "allow"
		if denied(t, e, input, c.inventory) {
			word = "deny "
		}
		found = append(found, fmt.Sprintf("%s %s", word, what))
	}
	say("as it is", c.input)
	say("no parameters", changed(t, c.input, func(input, _ object) { delete(input, "parameters") }))
	for _, field := range []string{"kind", "namespace", "object", "operation", "oldObject", "userInfo"} {
		say("review."+field+": null", changed(t, c.input, func(_, review object) { review[field] = nil }))
	}
	var walk func(at any, name string, set func(root object, to any), get func(root object) any)
	walk = func(at any, name string, set func(object, any), get func(object) any) {
		for _, odd := range []any{nil, "text"} {
			input := copiedObject(t, c.input)
			set(input, odd)
			say(fmt.Sprintf("%s: %v", name, map[bool]string{true: "null", false: "a text"}[odd == nil]), input)
		}
		switch at := at.(type) {
		case object:
			keys := make([]string, 0, len(at))
			for key := range at {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			for _, key := range keys {
				walk(at[key], name+"."+key, func(root object, to any) { get(root).(object)[key] = to }, //nolint:forcetypeassert // as at is
					func(root object) any { return get(root).(object)[key] }) //nolint:forcetypeassert // as at is
			}
		case []any:
			for i := range at {
				walk(at[i], fmt.Sprintf("%s[%d]", name, i), func(root object, to any) { get(root).([]any)[i] = to }, //nolint:forcetypeassert // as at is
					func(root object) any { return get(root).([]any)[i] }) //nolint:forcetypeassert // as at is
			}
		}
	}
	reviewed := func(root object) object { return root["review"].(object)["object"].(object) } //nolint:forcetypeassert // reviewOf made it
	given := reviewed(c.input)
	for _, key := range []string{"metadata", "spec"} {
		if given[key] != nil {
			walk(given[key], key, func(root object, to any) { reviewed(root)[key] = to }, func(root object) any { return reviewed(root)[key] })
		}
	}
	return found
}

// The outcomes are in testdata/edges. LANDWAITER_UPDATE=1 writes them; make generate does not,
// because each new line must be read: a "deny" that becomes an "allow" is a hole.
func TestMalformedObjectsGetTheOutcomeThatIsFixed(t *testing.T) {
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			t.Parallel()
			e, err := newEvaluator(s.parse(t))
			require.NoError(t, err)
			var text strings.Builder
			seen := map[bool]bool{}
			cases := s.cases(t)
			// A template that only judges changes has nothing to say of an object alone.
			for _, c := range append(only(cases, ""), only(cases, "CREATE")...) {
				outcome := denied(t, e, c.input, c.inventory)
				if !c.first || seen[outcome] {
					continue
				}
				seen[outcome] = true
				fmt.Fprintf(&text, "# %s\n%s\n", c.name, strings.Join(edges(t, e, c), "\n"))
			}
			require.Len(t, seen, 2, "the sample needs a case that it allows and one that it denies")
			name := filepath.Join("testdata/edges", s.folder+".txt")
			if os.Getenv("LANDWAITER_UPDATE") != "" {
				require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
				require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
			}
			fixed, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, string(fixed), text.String())
		})
	}
}

// only returns the cases with an operation.
func only(cases []testCase, operation string) []testCase {
	return slices.DeleteFunc(slices.Clone(cases), func(c testCase) bool {
		review, ok := c.input["review"].(object)
		return !ok || review["operation"] != operation
	})
}

// Debug containers are added by a subresource, which public templates often miss.
func TestEverySuiteOnPodsHasEphemeralContainersByTheirSubresource(t *testing.T) {
	for _, s := range templates(t) {
		var constraint struct {
			Spec struct {
				Match struct{ Kinds []struct{ Kinds []string } }
			}
		}
		load(t, filepath.Join(root, s.folder, "samples/constraint.yaml"), &constraint)
		require.NotEmpty(t, constraint.Spec.Match.Kinds, s.folder)
		if !slices.Contains(constraint.Spec.Match.Kinds[0].Kinds, "Pod") {
			continue
		}
		require.True(t, slices.ContainsFunc(s.cases(t), func(c testCase) bool {
			review, ok := c.input["review"].(object)
			return ok && review["subResource"] == "ephemeralcontainers" && review["operation"] == "UPDATE"
		}), s.folder)
	}
}
