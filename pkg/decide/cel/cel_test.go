package cel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
)

var variables = cel.Variables{"predicate": cel.Any, "predicateType": cel.Text, "now": cel.Time}

// values are the variables of an attestation.
func values(t testing.TB, predicate string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(predicate))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	return map[string]any{"predicate": value, "predicateType": "t", "now": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
}

func match(t *testing.T, text, predicate string) (bool, error) {
	t.Helper()
	compiled, err := cel.Compile(text, variables, cel.Fields{})
	require.NoError(t, err, text)
	matched, err := compiled.Match(nil, values(t, predicate))
	return matched, err
}

func TestOnlyTrueMatches(t *testing.T) {
	for expression, want := range map[string]bool{
		"predicate.n == 5": true, "predicate.n > 4": true, "predicate.n > 5": false, "predicate.f < 1": true, "predicate.f == 0.5": true,
		`predicate.list.all(x, x.startsWith("a"))`: true, `predicate.list.exists(x, x == "b")`: false,
		`predicateType == "t"`: true, `now < timestamp("2026-01-03T00:00:00Z")`: true, `now - timestamp(predicate.at) < duration("48h")`: true,
		"timestamp(predicate.n) < now && timestamp(now) == now": true,
		"has(predicate.missing)":                                false, "predicate.yes": true, "predicate.?missing.orValue(true)": true,
		`predicate in ["aa"]`: false, `predicate.list in ["aa", "ab"]`: false, `predicate.n in ["aa"]`: false, `predicate.list.exists_one(x, x == "aa")`: true,
		`predicate.list.exists_one(x, x != "b")`:        false,
		`predicate.list.all(x, x in ["aa", "ab", "x"])`: true, `predicate.list[0].matches("^a+$")`: true,
	} {
		got, err := match(t, expression, `{"n":5,"f":0.5,"list":["aa","ab"],"at":"2026-01-01T00:00:00Z","yes":true}`)
		require.NoError(t, err, expression)
		require.Equal(t, want, got, expression)
	}
}

func TestWhatSaysNothingIsAnErrorAndNoMatch(t *testing.T) {
	for name, c := range map[string][2]string{
		"missing field":    {"predicate.missing == 1", "{}"},
		"no predicate":     {"predicate.a == 1", "null"},
		"no bool":          {"predicate.a", `{"a":"true"}`},
		"wrong type":       {"int(predicate.a) + 1 == 2", `{"a":"x"}`},
		"division by zero": {"1 / predicate.a == 0", `{"a":0}`},
		"broken time":      {`timestamp(predicate.a) < now`, `{"a":"yesterday"}`},
		"long time":        {`timestamp(predicate.a) < now`, `{"a":"2026-01-01T00:00:00.` + strings.Repeat("0", 10_000) + `Z"}`},
		// Most of the cost is in the text: loops alone take seconds under the race detector.
		"too costly": {"predicate.l.all(a, predicate.l.all(b, !predicate.s.contains('x')))",
			`{"l":[` + strings.Repeat("1,", 99) + `1],"s":"` + strings.Repeat("y", 10_000) + `"}`},
	} {
		got, err := match(t, c[0], c[1])
		require.Error(t, err, name)
		require.False(t, got, name)
	}
	compiled, err := cel.Compile("predicate.l.all(a, predicate.l.all(b, a == b))", variables, cel.Fields{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := compiled.Match(ctx.Err, values(t, `{"l":[`+strings.Repeat("1,", 999)+`1]}`))
	require.Error(t, err, "it ends with the request")
	require.False(t, got)
}

// Short expressions must not make large values: no strings, no lists, and no nested lists
// that only look small.
func TestExpressionsThatGrowAreRefused(t *testing.T) {
	doubling := func(double string) string {
		inner := "a40.size() > 0"
		for i := 40; i > 0; i-- {
			inner = fmt.Sprintf("[%s].exists(a%d, %s)", strings.ReplaceAll(double, "a", fmt.Sprintf("a%d", i-1)), i, inner)
		}
		return "[predicate.a].exists(a0, " + inner + ")"
	}
	for _, text := range []string{
		doubling("a + a"), doubling("[a, a]"), doubling("{1: a, 2: a}"), "predicate.a + predicate.a == predicate.b", `predicate.a + "x" == "y"`,
		"[predicate.a].exists(a, a == 1)", "predicate.l.map(x, predicate.l).size() > 0", "predicate.l.filter(x, true).size() > 0", "{'a': predicate.a}.size() > 0",
		"predicate.l + predicate.l == []", "[[1, 2], [3]].size() > 0", "optional.of([predicate.a, predicate.a]).hasValue()",
	} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.Error(t, err, "%.80s", text)
	}
	for _, text := range []string{"int(predicate.a) + 1 > 2", `now + duration("1h") > timestamp(predicate.at)`, "predicate.a in [1, 2]",
		`predicate.?a.orValue("") == "x"`} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.NoError(t, err, text)
	}
}

func TestExpressionsThatCannotWorkAreRefusedWithThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"predicate.": "line 1, column 11: ", "unknown == 1": "undeclared reference to 'unknown'", "1 + 1": "it must be true or false",
		`"true"`:         "it must be true or false",
		"predicate.a ==": "Syntax error", strings.Repeat("x", 8<<10+1): "the limit is 8192", "": "Syntax error", "httpGet('http://x')": "undeclared reference",
		"lists.range(1000000000).size() > 0": "undeclared reference", `predicate.a.replace("a", "aaaaaaaaaa") == ""`: "undeclared reference",
	} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.ErrorContains(t, err, want, "%.40s", text)
	}
}

func TestEveryErrorIsOneBoundedLine(t *testing.T) {
	for _, text := range []string{
		"predicate.", "predicate.a ==\n\n  unknown\n", "predicate.a\n\x00 ==", "'\n", "predicate.a == \"\"\"a\nb\"\"\" +\n1",
		strings.Repeat("(", 400), strings.Repeat("!", 300) + "x", "predicate.matches(predicate.a)", strings.Repeat("unknown ==\n", 200) + "1",
	} {
		_, err := cel.Compile(text, variables, cel.Fields{})
		require.Error(t, err, text)
		requireLine(t, err)
	}
	for text, predicate := range map[string]any{
		`predicate["a\nb"] == 1`:              map[string]any{},
		"predicate.a == 1":                    map[string]any{strings.Repeat("\n", 2000): 1},
		"timestamp(predicate.a) > now":        map[string]any{"a": "x\n^\n" + strings.Repeat("y", 4000)},
		"int(predicate.a) == 1":               map[string]any{"a": "1\u2028\u202e2"},
		`predicate.a.matches("^a+$") == true`: map[string]any{"a": strings.Repeat("a\n", 1<<20)},
	} {
		compiled, err := cel.Compile(text, variables, cel.Fields{})
		require.NoError(t, err, text)
		matched, err := compiled.Match(nil, map[string]any{"predicate": predicate, "predicateType": "t", "now": time.Unix(0, 0)})
		require.False(t, matched)
		require.Error(t, err, text)
		requireLine(t, err)
	}
}

func requireLine(t *testing.T, err error) {
	t.Helper()
	require.LessOrEqual(t, len(err.Error()), 400)
	require.Equal(t, -1, strings.IndexFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err)
}

func FuzzMatch(f *testing.F) {
	compiled, err := cel.Compile(`has(predicate.a) && predicate.a.size() > 0`, variables, cel.Fields{})
	require.NoError(f, err)
	f.Add(`{"a":[1,{"b":null}]}`)
	f.Add(`{"a":1e999}`)
	f.Fuzz(func(t *testing.T, predicate string) {
		decoder := json.NewDecoder(strings.NewReader(predicate))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return
		}
		matched, err := compiled.Match(nil, map[string]any{"predicate": value, "predicateType": "t", "now": time.Unix(0, 0)})
		require.False(t, matched && err != nil, fmt.Sprint(err))
	})
}
