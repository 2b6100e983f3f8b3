package cel_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

func joined(part, separator string, n int) string {
	return strings.TrimSuffix(strings.Repeat(part+separator, n), separator)
}

// loops nests a macro n deep.
func loops(n int) string {
	text := "true"
	for range n {
		text = "predicate.l.all(x, " + text + ")"
	}
	return text
}

func TestRefusesAnExpressionThatCompilesToALargeProgram(t *testing.T) {
	for text, want := range map[string]string{
		`predicateType.matches("(?:` + strings.Repeat("a", 400) + `){1000}")`: "compiles to about",
		joined(`predicateType.matches("(a{900})")`, "||", 3):                  "instructions together",
		joined(`matches(predicateType, "(a{900})")`, "||", 3):                 "instructions together",
		joined("predicate.exists_one(x,x)", "||", 250):                        "more than 1000 parts",
		joined("'a'=='b'", "||", 700):                                         "more than 1000 parts",
		loops(5):                                                              "more than 4 deep",
		strings.Repeat("(", 150) + "true" + strings.Repeat(")", 150):          "recursion limit",
		"predicate" + strings.Repeat("[0]", 2600):                             "max recursion depth",
		`predicateType.matches("(")`:                                          "cannot be read",
	} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.ErrorContains(t, err, want, "%.60s", text)
		require.Less(t, len(err.Error()), 600, "it lands in a status")
	}
	for _, text := range []string{loops(4), joined(`predicateType.matches("^[a-z]{1,9}$")`, "||", 20), "predicate.a in [" + joined("'x'", ",", 900) + "]"} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.NoError(t, err, "%.60s", text)
	}
}

// Who signs a predicate must not choose what is compiled.
func TestRefusesARegularExpressionThatOnlyTheEvidenceKnows(t *testing.T) {
	for _, text := range []string{
		"predicateType.matches(predicate.pattern)", "matches(predicateType, predicate.pattern)", "predicate.l.all(x, predicateType.matches(x))",
		`predicateType.matches(predicate.a ? "a" : "b")`, "predicate.a.matches(predicateType)", `["a"].exists(x, predicateType.matches(x))`,
	} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.ErrorContains(t, err, "constant regular expression", text)
	}
}

func TestAMatchCostsWhatItsProgramAndItsTextMakeOfIt(t *testing.T) {
	text := strings.Repeat("a", 1000)
	for name, predicate := range map[string]map[string]any{
		"one long text":    {"l": []any{strings.Repeat("a", 1<<20)}},
		"many short texts": {"l": toList(text, 1000)},
	} {
		compiled, err := cel.Compile(`predicate.l.all(x, x.matches("(?:.{30}){28}x|a"))`, variables, cel.Fields{})
		require.NoError(t, err)
		encoded, err := json.Marshal(predicate)
		require.NoError(t, err)
		matched, err := compiled.Match(nil, values(t, string(encoded)))
		require.Error(t, err, name)
		require.False(t, matched, name)
	}
	got, err := match(t, `predicate.l.all(x, x.matches("^a+$")) && matches(predicateType, "t") && !predicateType.matches("^a")`, `{"l":["`+text+`","a"]}`)
	require.NoError(t, err)
	require.True(t, got)
	got, err = match(t, `predicate.n.matches("a")`, `{"n":5}`)
	require.Error(t, err, "a number matches nothing")
	require.False(t, got)
}

func toList(text string, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = text
	}
	return list
}

// worst are accepted expressions that keep the most, each of another shape.
func worst() []string {
	return []string{
		"true", joined("predicate", "||", 500), joined("now<now", "||", 250), joined("predicate.all(x,x)", "||", 70), joined("predicate.exists_one(x,x)", "||", 45),
		joined("predicate.a==1", "||", 200), joined("has(predicate.a)", "||", 300), joined("predicate.?a.orValue(true)", "||", 160),
		"predicate in [" + joined("''", ",", 990) + "]",
		joined(`predicateType.matches("a")`, "||", 240), joined(`predicateType.matches("^(?:[a-z]{9}){9}$")`, "||", 8), `predicateType.matches("^(?:a{1000})$")`,
		loops(4), joined(loops(4), "||", 15), strings.Repeat("!", 8000) + "true", "predicate" + strings.Repeat("[0]", 80) + " == 1",
	}
}

func TestAnAcceptedExpressionKeepsNoMoreThanBytesSays(t *testing.T) {
	for _, text := range worst() {
		const copies = 3
		all := make([]*cel.Expression, copies)
		before := memory.InUse()
		for i := range all {
			compiled, err := cel.Compile(text, variables, cel.Fields{})
			require.NoError(t, err, "%.60s", text)
			all[i] = compiled
		}
		kept := (memory.InUse() - before) / copies
		runtime.KeepAlive(all)
		require.LessOrEqual(t, kept, cel.Bytes(text), "%.60s", text)
		t.Logf("%7d bytes of text keep %7d, bound %7d: %.40s", len(text), kept, cel.Bytes(text), text)
	}
}

// BenchmarkCompileWorst measures the slowest accepted expressions.
func BenchmarkCompileWorst(b *testing.B) {
	for _, text := range worst() {
		b.Run(text[:min(len(text), 30)], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := cel.Compile(text, variables, cel.Fields{})
				require.NoError(b, err)
			}
		})
	}
}

// FuzzCompile checks that no text panics, that what is accepted ends within its limits,
// and that an error is never a match.
func FuzzCompile(f *testing.F) {
	for _, text := range append(worst(), `predicate.l.all(x, x.matches("a|b"))`, "now - timestamp(predicate.at) < duration('1h')", "[[1]].exists(x, x == [1])",
		"predicate.a.b.?c[?1].orValue(2u) != b'x'", "{1: 2}") {
		f.Add(text, `{"l":["a",{"b":1.5}],"at":"2026-01-01T00:00:00Z"}`)
	}
	f.Fuzz(func(t *testing.T, text, predicate string) {
		compiled, err := cel.Compile(text, variables, cel.Fields{})
		if err != nil {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(predicate))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return
		}
		matched, err := compiled.Match(nil, map[string]any{"predicate": value, "predicateType": "t", "now": time.Unix(0, 0)})
		require.False(t, matched && err != nil)
	})
}
