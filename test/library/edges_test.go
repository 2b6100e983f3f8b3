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
func denied(t *testing.T, e evaluator, input ast.Value, inventory storage.Store) bool {
	t.Helper()
	messages, err := e.messages(t.Context(), input, inventory)
	require.NoError(t, err)
	for _, message := range messages {
		require.NotContains(t, message, "\n")
		require.NotEmpty(t, message)
	}
	return len(messages) > 0
}

// absent stands for a field that is not there.
type absent struct{}

// differing is an object with other values for some fields. Converting a whole review each time
// would take most of the time of these tests.
func differing(t *testing.T, from ast.Value, fields object) ast.Value {
	t.Helper()
	given, ok := from.(ast.Object)
	require.True(t, ok)
	made := ast.NewObject()
	given.Foreach(func(key, value *ast.Term) {
		name, _ := key.Value.(ast.String)
		if _, other := fields[string(name)]; !other {
			made.Insert(key, value)
		}
	})
	for name, value := range fields {
		switch value := value.(type) {
		case absent:
		case ast.Value:
			made.Insert(ast.StringTerm(name), ast.NewTerm(value))
		default:
			made.Insert(ast.StringTerm(name), ast.NewTerm(ast.MustInterfaceToValue(value)))
		}
	}
	return made
}

// asking is a case with other fields of its review.
func (c testCase) asking(t *testing.T, fields object) ast.Value {
	t.Helper()
	review, err := c.parsed.Find(ast.Ref{ast.StringTerm("review")})
	require.NoError(t, err)
	return differing(t, c.parsed, object{"review": differing(t, review, fields)})
}

// Whatever is lost on the way to a template, it does not allow what it denied.
func TestWhatIsUnknownNeverAllows(t *testing.T) {
	lost := map[string]object{
		"the namespace":                {"namespaceObject": absent{}},
		"a null namespace":             {"namespaceObject": nil},
		"no metadata of the namespace": {"namespaceObject": object{}},
		"null metadata":                {"namespaceObject": object{"metadata": nil}},
		"no labels":                    {"namespaceObject": object{"metadata": object{}}},
		"null labels":                  {"namespaceObject": object{"metadata": object{"labels": nil}}},
		"labels of another type":       {"namespaceObject": object{"metadata": object{"labels": []any{"landwaiter.dev/tenant"}}}},
		"no name of a namespace":       {"namespace": absent{}},
		"no user":                      {"userInfo": absent{}},
		"a null user":                  {"userInfo": nil},
	}
	empty := stored(object{})
	for _, s := range templates(t) {
		t.Run(s.folder, func(t *testing.T) {
			t.Parallel()
			e := s.evaluator(t)
			for _, c := range s.cases(t) {
				if c.twin || !denied(t, e, c.parsed, c.inventory) {
					continue
				}
				for name, fields := range lost {
					require.True(t, denied(t, e, c.asking(t, fields), empty), "%s: allowed with %s", c.name, name)
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
			e := s.evaluator(t)
			for _, c := range s.cases(t) {
				if c.twin {
					continue
				}
				judge := func(operation string, old any) bool {
					return denied(t, e, c.asking(t, object{"operation": operation, "oldObject": old}), c.inventory)
				}
				created := judge("CREATE", nil)
				for name, old := range map[string]any{"null": nil, "a text": "garbage", "a list": []any{}, "an object without anything": object{}} {
					require.Equal(t, created, judge("UPDATE", old), "%s: the old object is %s", c.name, name)
				}
				require.False(t, judge("DELETE", nil), "%s: deleting", c.name)
				same, err := c.parsed.Find(ast.Ref{ast.StringTerm("review"), ast.StringTerm("object")})
				require.NoError(t, err)
				require.False(t, judge("UPDATE", same), "%s: an update that changes nothing", c.name)
			}
		})
	}
}

// edges evaluates a case with each field of its object, and of its review, set to null, and says
// what comes of it.
func edges(t *testing.T, e evaluator, c testCase) []string {
	t.Helper()
	var found []string
	say := func(what string, input ast.Value) {
		word := "allow"
		if denied(t, e, input, c.inventory) {
			word = "deny "
		}
		found = append(found, fmt.Sprintf("%s %s", word, what))
	}
	say("as it is", c.parsed)
	say("no parameters", differing(t, c.parsed, object{"parameters": absent{}}))
	for _, field := range []string{"kind", "namespace", "object", "operation", "oldObject", "userInfo"} {
		say("review."+field+": null", c.asking(t, object{field: nil}))
	}
	var walk func(at any, name string, set func(root object, to any), get func(root object) any)
	walk = func(at any, name string, set func(object, any), get func(object) any) {
		for _, odd := range []any{nil, "text"} {
			input := copiedObject(t, c.input)
			set(input, odd)
			say(fmt.Sprintf("%s: %v", name, map[bool]string{true: "null", false: "a text"}[odd == nil]), ast.MustInterfaceToValue(input))
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
			e := s.evaluator(t)
			var text strings.Builder
			seen := map[bool]bool{}
			cases := s.cases(t)
			// A template that only judges changes has nothing to say of an object alone.
			for _, c := range append(only(cases, ""), only(cases, "CREATE")...) {
				outcome := denied(t, e, c.parsed, c.inventory)
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
