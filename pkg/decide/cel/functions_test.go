package cel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
)

// byFunction calls each function of the environment with arguments of any size: a text of so many bytes
// as t, a list of so many numbers as l, an object of so many fields as m, and equal values of each as
// t2, l2 and m2. Those under grows take longer for larger arguments, those under flat do not.
var byFunction = map[string]struct{ grows, flat, keys []string }{
	"_==_": {grows: []string{"t == t2", "l == l2", "m == m2", "o == o2"}, flat: []string{"t == 1", "l == 1"}},
	"_!=_": {grows: []string{"t != t2", "l != l2", "m != m2", "o != o2"}},
	"_<_":  {grows: []string{"t < t2"}}, "_<=_": {grows: []string{"t <= t2"}}, "_>_": {grows: []string{"t > t2"}}, "_>=_": {grows: []string{"t >= t2"}},
	"@in": {grows: []string{"-1 in l", "l in [1, 2]", "t in m", "t in ['a', 'b']", "t in ['a', 1]", "m in ['a', 'b']", "l in ['a', 'b']", "l in o"},
		flat: []string{"'a' in m"}},
	"_in_": {}, "in": {}, // no expression can call them
	"size":       {grows: []string{"size(t) > 0", "t.size() > 0"}, flat: []string{"size(l) > 0", "m.size() > 0"}},
	"contains":   {grows: []string{"t.contains('x')", "'x'.contains(t)"}},
	"startsWith": {grows: []string{"t.startsWith(t2)"}}, "endsWith": {grows: []string{"t.endsWith(t2)"}},
	"matches": {grows: []string{"t.matches('^[a-z]+$')", "matches(t, 'b')"}},
	"bytes":   {grows: []string{"bytes(t) == b''"}}, "string": {grows: []string{"string(t) == ''", "string(bytes(t)) == ''"}},
	"bool": {grows: []string{"bool(t)"}}, "int": {grows: []string{"int(t) == 1"}}, "uint": {grows: []string{"uint(t) == 1u"}},
	"double":   {grows: []string{"double(t) == 1.0"}},
	"duration": {grows: []string{"duration(t) == duration('1s')"}}, "timestamp": {grows: []string{"timestamp(t) == now"}},
	"dyn": {flat: []string{"dyn(t) == 1"}}, "type": {flat: []string{"type(l) == int"}},
	"_[_]":  {keys: []string{"m[t] == 1"}, flat: []string{"m['f1'] == 1", "l[1] == 1"}},
	"_[?_]": {keys: []string{"m[?t].hasValue()", "(has(m.a) ? m : m2)[?t].hasValue()"}, flat: []string{"m[?'a'].hasValue()"}},
	"_?._":  {flat: []string{"m.?a.hasValue()"}},
	"_?_:_": {flat: []string{"has(m.a) ? l == 1 : m == 1"}}, "_&&_": {flat: []string{"l == 1 && m == 1"}}, "_||_": {flat: []string{"l == 1 || m == 1"}},
	"!_":                  {flat: []string{"!(l == 1)"}},
	"@not_strictly_false": {}, "__not_strictly_false__": {}, // of macros only
	"optional.of": {flat: []string{"optional.of(l).hasValue()"}}, "optional.ofNonZeroValue": {flat: []string{"optional.ofNonZeroValue(l).hasValue()"}},
	"optional.none": {flat: []string{"optional.none().hasValue()"}},
	"hasValue":      {flat: []string{"m.?a.hasValue()"}}, "value": {flat: []string{"optional.of(l).value() == 1"}},
	"or":      {flat: []string{"m.?a.or(m.?b).hasValue()"}},
	"orValue": {flat: []string{"m.?a.orValue(true)"}},
	"first":   {flat: []string{"l.first().hasValue()"}}, "last": {flat: []string{"l.last().hasValue()"}},
	"optional.unwrap": {grows: []string{"optional.unwrap(l) == []"}}, "unwrapOpt": {grows: []string{"l.unwrapOpt() == []"}},
	"_+_": {flat: []string{"size(l) + 1 > 0"}}, "_-_": {flat: []string{"size(l) - 1 > 0"}}, "_*_": {flat: []string{"size(l) * 2 > 0"}},
	"_/_": {flat: []string{"size(l) / 2 > 0"}}, "_%_": {flat: []string{"size(l) % 2 > 0"}}, "-_": {flat: []string{"-size(l) > 0"}},
	"getFullYear": {flat: []string{"now.getFullYear() > 0"}}, "getMonth": {flat: []string{"now.getMonth() > 0"}},
	"getDayOfYear": {flat: []string{"now.getDayOfYear() > 0"}}, "getDayOfMonth": {flat: []string{"now.getDayOfMonth() > 0"}},
	"getDate": {flat: []string{"now.getDate() > 0"}}, "getDayOfWeek": {flat: []string{"now.getDayOfWeek() > 0"}},
	"getMinutes": {flat: []string{"now.getMinutes() > 0"}}, "getSeconds": {flat: []string{"now.getSeconds() > 0"}},
	"getMilliseconds": {flat: []string{"now.getMilliseconds() > 0"}}, "getHours": {grows: []string{"now.getHours(t) > 0"}, flat: []string{"now.getHours() > 0"}},
}

var shapes = cel.Variables{"t": cel.Any, "t2": cel.Any, "l": cel.Any, "l2": cel.Any, "m": cel.Any, "m2": cel.Any, "o": cel.Any, "o2": cel.Any, "now": cel.Time}

// shaped returns the variables of [shapes] in a size.
func shaped(t testing.TB, n int) map[string]any {
	t.Helper()
	of := map[string]any{}
	for _, suffix := range []string{"", "2"} {
		object := map[string]any{}
		for i := range n {
			object[fmt.Sprintf("f%d", i)] = json.Number("1")
		}
		of["t"+suffix], of["l"+suffix], of["m"+suffix], of["o"+suffix] = strings.Repeat("a", n), slices.Repeat([]any{json.Number("1")}, n), object,
			[]any{[]any{slices.Repeat([]any{json.Number("1")}, n)}}
	}
	of["now"] = values(t, "{}")["now"]
	return of
}

// A version of the library with another function fails here, until the table has it.
func TestEveryFunctionIsChargedForAllThatItLooksAt(t *testing.T) {
	small, large := shaped(t, 64), shaped(t, 12_800)
	functions := cel.Functions(t, shapes)
	for _, name := range functions {
		calls, ok := byFunction[name]
		require.True(t, ok, "the function %s has no row: find out what it costs for large arguments", name)
		for _, text := range calls.grows {
			// A text is some 64 bytes for each unit of cost, a list one element or more.
			require.GreaterOrEqual(t, cel.Costs(t, text, shapes, large)(), cel.Costs(t, text, shapes, small)()+12_000/64, text)
		}
		for _, text := range calls.keys {
			require.Less(t, cel.Costs(t, text, shapes, large)(), uint64(20), "it belongs to grows: %s", text)
			compiled, err := cel.Compile(text, shapes, cel.Fields{})
			require.NoError(t, err)
			_, err = compiled.Match(nil, shaped(t, 20_000))
			require.ErrorContains(t, err, "too long for an expression with computed keys", text)
		}
		for _, text := range calls.flat {
			require.LessOrEqual(t, cel.Costs(t, text, shapes, large)(), uint64(20), text)
		}
	}
	for name := range byFunction {
		require.True(t, slices.Contains(functions, name), "%s is no function any more", name)
	}
}

// BenchmarkFunctions prints what each function takes for arguments of growing size, and a unit of its cost.
func BenchmarkFunctions(b *testing.B) {
	for name, calls := range byFunction {
		for _, text := range slices.Concat(calls.grows, calls.flat, calls.keys) {
			for _, n := range []int{100, 10_000} {
				evaluate := cel.Costs(b, text, shapes, shaped(b, n))
				b.Run(fmt.Sprintf("%s/%s/%d", name, strings.ReplaceAll(text, " ", ""), n), func(b *testing.B) {
					cost := uint64(0)
					for b.Loop() {
						cost += evaluate()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(cost), "ns/unit")
				})
			}
		}
	}
}
