package schema_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// place is somewhere in an object: a key of a map, or an index of a list.
type place struct {
	path string
	get  func() any
	set  func(any)
	drop func() // nil in lists
}

// places lists all places below value.
func places(value any, path string, found []place) []place {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := strings.TrimPrefix(path+"."+name, ".")
			if below == "apiVersion" || below == "kind" || below == "status" {
				continue
			}
			found = append(found, place{below, func() any { return value[name] }, func(v any) { value[name] = v }, func() { delete(value, name) }})
			found = places(value[name], below, found)
		}
	case []any:
		for i := range value {
			below := fmt.Sprintf("%s[%d]", path, i)
			found = append(found, place{below, func() any { return value[i] }, func(v any) { value[i] = v }, nil})
			found = places(value[i], below, found)
		}
	}
	return found
}

func decoded(t require.TestingT, s sample) map[string]any {
	var object map[string]any
	require.NoError(t, utiljson.Unmarshal(s.text, &object))
	return object
}

// values are what mistakes are made of.
func values() []any {
	return []any{nil, "", "x", "*", "**", "system:x", "0s", "5m", strings.Repeat("long ", 1000), int64(0), int64(-1), int64(5), int64(1 << 40), 1.5, true, []any{},
		map[string]any{},
		[]any{"a"}, []any{"a", "a"}, []any{"*", "b"}, []any{map[string]any{"name": "x"}}, []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}},
		map[string]any{"name": "x"}, map[string]any{"name": "x", "key": "y"},
		map[string]any{"a": "b"}, map[string]any{"inline": "x"}, "Require", "Cosign", "Notation", "Namespace", "ServiceAccount", "2026-12-31T18:00:00Z"}
}

// mistake changes object at one place: to a value of another type or beyond a bound, to what
// another resource has somewhere, by a field that the schema has or does not, or by one less.
func mistake(t *rapid.T, kind *schema.Schema, object map[string]any, others []sample) {
	all := places(object, "", nil)
	if len(all) == 0 {
		return
	}
	at := all[rapid.IntRange(0, len(all)-1).Draw(t, "place")]
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		if at.drop != nil {
			at.drop()
		}
	case 1:
		at.set(runtime.DeepCopyJSONValue(rapid.SampledFrom(values()).Draw(t, "value")))
	case 2:
		from := places(decoded(t, others[rapid.IntRange(0, len(others)-1).Draw(t, "other")]), "", nil)
		at.set(runtime.DeepCopyJSONValue(from[rapid.IntRange(0, len(from)-1).Draw(t, "from")].get()))
	case 3:
		if list, ok := at.get().([]any); ok && len(list) > 0 {
			for range rapid.SampledFrom([]int{1, 2, 70}).Draw(t, "times") {
				list = append(list, runtime.DeepCopyJSONValue(list[0]))
			}
			at.set(list)
		}
	default:
		inner, ok := at.get().(map[string]any)
		if !ok || at.path == "metadata" {
			return
		}
		names := append(kind.Siblings(at.path+".x"), "unknown")
		name := rapid.SampledFrom(names).Draw(t, "name")
		inner[name] = runtime.DeepCopyJSONValue(rapid.SampledFrom(values()).Draw(t, "value"))
		for _, other := range others { // more often than not, a field has what some resource has there
			for _, from := range places(decoded(t, other), "", nil) {
				if strings.HasSuffix(from.path, "."+name) && rapid.Bool().Draw(t, "as there") {
					inner[name] = runtime.DeepCopyJSONValue(from.get())
					return
				}
			}
		}
	}
}

// said lists errors as texts, those of values of the wrong type alone: the library also compares these with bounds.
func said(errs field.ErrorList) map[string]bool {
	texts, mistyped := map[string]bool{}, map[string]bool{}
	for _, e := range errs {
		if e.Type == field.ErrorTypeTypeInvalid {
			mistyped[e.Field] = true
		}
	}
	for _, e := range errs {
		of := e.Field
		if _, path, ok := strings.Cut(e.Detail, " in spec."); ok && of == "<nil>" {
			of = "spec." + path
		}
		if e.Type == field.ErrorTypeTypeInvalid || !mistyped[of] {
			texts[e.Error()] = true
		}
	}
	return texts
}

// The order of errors is our own, and so is which of them are left out.
func TestTheLibraryByItselfFindsTheSame(t *testing.T) {
	set, all := schema.Embedded(), samples(t)
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "sample")]
		object := decoded(t, s)
		kind, err := set.Of(s.kind)
		require.NoError(t, err)
		for range rapid.IntRange(1, 4).Draw(t, "mistakes") {
			mistake(t, kind, object, all)
		}
		want, found := kind.Unordered(object), kind.Ordered(object)
		if len(found) == schema.MaxFaults {
			require.Subset(t, slices.Collect(maps.Keys(said(want))), slices.Collect(maps.Keys(said(found))))
		} else {
			require.Equal(t, said(want), said(found))
		}
		if len(found) > 0 {
			refused++
		}
	})
	t.Logf("%d were refused", refused)
}
