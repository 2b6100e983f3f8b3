package attest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/attest"
)

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func statement(predicate string) string {
	return `{"_type":"https://in-toto.io/Statement/v1","predicateType":"t","subject":[{"digest":{"sha256":"` + sum + `"}}],"predicate":` + predicate + `}`
}

func TestStatementsAreReadStrictly(t *testing.T) {
	s, err := attest.ParseStatement([]byte(statement(`{"a":1}`)))
	require.NoError(t, err)
	require.Equal(t, "t", s.PredicateType)
	require.Equal(t, []string{sum}, s.Digests)
	require.Equal(t, map[string]any{"a": json.Number("1")}, s.Predicate)
	for name, text := range map[string]string{
		"no JSON": "x", "a list": "[]", "empty": "{}",
		"another version":         strings.Replace(statement("{}"), "/v1", "/v2", 1),
		"no predicate type":       strings.Replace(statement("{}"), `"predicateType":"t",`, "", 1),
		"predicate type, no text": strings.Replace(statement("{}"), `"t"`, "7", 1),
		"another case":            strings.Replace(statement("{}"), "predicateType", "PredicateType", 1),
		"twice":                   strings.Replace(statement("{}"), `"predicateType":"t",`, `"predicateType":"t","predicateType":"u",`, 1),
		"no subject":              strings.Replace(statement("{}"), "subject", "object", 1),
		"other digests":           strings.Replace(statement("{}"), "sha256", "sha512", 1),
		"damaged digest":          strings.Replace(statement("{}"), "0123", "zzzz", 1),
		"upper case":              strings.Replace(statement("{}"), "abcdef", "ABCDEF", 1),
		"short digest":            strings.Replace(statement("{}"), "0123", "", 1),
		"too deep":                statement(strings.Repeat("[", 80) + strings.Repeat("]", 80)),
		"too large":               statement(`"` + strings.Repeat("x", 4<<20) + `"`),
		"trailing":                statement("{}") + "{}",
	} {
		_, err := attest.ParseStatement([]byte(text))
		require.Error(t, err, name)
	}
}

func match(t *testing.T, expression, predicate string) (bool, error) {
	t.Helper()
	compiled, err := attest.Compile(expression)
	require.NoError(t, err, expression)
	s, err := attest.ParseStatement([]byte(statement(predicate)))
	require.NoError(t, err)
	return compiled.Match(t.Context(), s, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
}

func TestOnlyTrueMatches(t *testing.T) {
	for expression, want := range map[string]bool{
		"predicate.n == 5": true, "predicate.n > 4": true, "predicate.n > 5": false, "predicate.f < 1": true, "predicate.f == 0.5": true,
		`predicate.list.all(x, x.startsWith("a"))`: true, `predicate.list.exists(x, x == "b")`: false,
		`predicateType == "t"`: true, `now < timestamp("2026-01-03T00:00:00Z")`: true, `now - timestamp(predicate.at) < duration("48h")`: true,
		"has(predicate.missing)": false, "predicate.yes": true, "predicate.?missing.orValue(true)": true,
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
		"too costly":       {"predicate.l.all(a, predicate.l.all(b, predicate.l.all(c, a * b * c >= 0)))", `{"l":[` + strings.Repeat("1,", 999) + `1]}`},
	} {
		got, err := match(t, c[0], c[1])
		require.Error(t, err, name)
		require.False(t, got, name)
	}
	compiled, err := attest.Compile("predicate.l.all(a, predicate.l.all(b, a == b))")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := attest.ParseStatement([]byte(statement(`{"l":[` + strings.Repeat("1,", 999) + `1]}`)))
	require.NoError(t, err)
	got, err := compiled.Match(ctx, s, time.Now())
	require.Error(t, err, "it ends with the request")
	require.False(t, got)
}

// Short expressions must not make large values: not of texts, not of lists, and
// not of nested lists that only look small.
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
		_, err := attest.Compile(text)
		require.Error(t, err, "%.80s", text)
	}
	for _, text := range []string{"int(predicate.a) + 1 > 2", `now + duration("1h") > timestamp(predicate.at)`, "predicate.a in [1, 2]", `predicate.?a.orValue("") == "x"`} {
		_, err := attest.Compile(text)
		require.NoError(t, err, text)
	}
}

func TestExpressionsThatCannotWorkAreRefusedWithThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"predicate.": "1:11", "unknown == 1": "undeclared reference to 'unknown'", "1 + 1": "it must be true or false", `"true"`: "it must be true or false",
		"predicate.a ==": "Syntax error", strings.Repeat("x", 8<<10+1): "longer than", "": "Syntax error", "httpGet('http://x')": "undeclared reference",
		"lists.range(1000000000).size() > 0": "undeclared reference", `predicate.a.replace("a", "aaaaaaaaaa") == ""`: "undeclared reference",
	} {
		_, err := attest.Compile(text)
		require.ErrorContains(t, err, want, "%.40s", text)
	}
}

func FuzzParseStatement(f *testing.F) {
	f.Add([]byte(statement(`{"a":[1,{"b":null}]}`)))
	f.Add([]byte("{}"))
	compiled, err := attest.Compile(`has(predicate.a) && predicate.a.size() > 0`)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := attest.ParseStatement(data)
		if err != nil {
			return
		}
		require.NotEmpty(t, s.Digests)
		require.NotEmpty(t, s.PredicateType)
		matched, err := compiled.Match(t.Context(), s, time.Unix(0, 0))
		require.False(t, matched && err != nil, fmt.Sprint(err))
	})
}
