package cel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
)

// hostile are accepted expressions that look at much for little, with predicates of at most 8 MiB
// that the signer chooses.
func hostile() map[string]struct{ expression, predicate string } {
	const most = 8 << 20
	long := `"` + strings.Repeat("ü", most/2-100_000) + `"`
	list := func(element string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	nested := list(list(list("[0]", 40), 40), 40)
	return map[string]struct{ expression, predicate string }{
		"the runes of a text":            {"predicate.l.all(x, size(predicate.s) > 0)", `{"l":` + list("1", 1000) + `,"s":` + long + `}`},
		"the runes of a text, as method": {"predicate.l.all(x, predicate.s.size() > 0)", `{"l":` + list("1", 1000) + `,"s":` + long + `}`},
		"nested lists":                   {joined("predicate.a == predicate.b", "&&", 60), `{"a":` + nested + `,"b":` + nested + `}`},
		"nested lists that differ":       {joined("!(predicate.a != predicate.b)", "&&", 60), `{"a":` + nested + `,"b":` + nested + `}`},
		"a list among lists": {joined("!(predicate.a in predicate.b)", "&&", 60),
			`{"a":` + list(list(list("0", 40), 40), 41) + `,"b":` + list(list(list(list("0", 40), 40), 40), 4) + `}`},
		"a whole predicate": {joined("predicate == predicate", "&&", 100), `{"a":` + nested + `,"s":` + long + `}`},
		"objects": {joined("predicate.a == predicate.b", "&&", 60), `{"a":` + list(`{"a":{"b":{"c":1}}}`, 20_000) + `,"b":` +
			list(`{"a":{"b":{"c":1}}}`, 20_000) + `}`},
		"a text among constants": {"predicate.l.all(x, !(predicate.s in ['a', 'b']))", `{"l":` + list("1", 20_000) + `,"s":` + long + `}`},
		"a text as a key":        {"predicate.l.all(x, !(predicate.s in predicate.m))", `{"l":` + list("1", 20_000) + `,"m":{"a":1},"s":` + long + `}`},
		"a text that is looked up": {"predicate.l.all(x, predicate.m[?predicate.s].orValue(1) == 1)",
			`{"l":` + list("1", 20_000) + `,"m":{"a":1},"s":` + long + `}`},
		"a text to bytes":                {"predicate.l.all(x, bytes(predicate.s) != b'')", `{"l":` + list("1", 10_000) + `,"s":` + long + `}`},
		"a text that is no number":       {"predicate.l.exists(x, int(predicate.s) == 1) || true", `{"l":` + list("1", 5_000) + `,"s":` + long + `}`},
		"one of many":                    {"predicate.l.exists_one(x, has(x.y))", `{"l":` + list("0", 590_000) + `}`},
		"one of many fields":             {"predicate.l.exists_one(x, x.a)", `{"l":` + list(`{"a":false}`, 60_000) + `}`},
		"none of many":                   {"predicate.l.exists_one(x, false) || predicate.l.all(x, x != 1)", `{"l":` + list("0", 590_000) + `}`},
		"time zones":                     {"predicate.l.all(x, now.getHours('Europe/Berlin') >= 0)", `{"l":` + list("1", 40_000) + `}`},
		"more values than an expression": {"predicate.a == predicate.a", `{"a":` + list("0", most/2-100) + `}`},
	}
}

func TestWhateverASignerChoosesAnExpressionEndsWithinItsLimits(t *testing.T) {
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			compiled, err := cel.Compile(c.expression, variables, cel.Fields{})
			require.NoError(t, err)
			require.LessOrEqual(t, len(c.predicate), 8<<20+1<<17)
			matched, err := compiled.Match(nil, values(t, c.predicate))
			require.ErrorIs(t, err, cel.ErrLimit)
			require.False(t, matched)
		})
	}
}

func TestAnEvaluationLetsOthersGoFirstAndEndsWithThem(t *testing.T) {
	compiled, err := cel.Compile("predicate.l.all(a, predicate.l.all(b, a == b))", variables, cel.Fields{})
	require.NoError(t, err)
	steps := 0
	matched, err := compiled.Match(func() error { steps++; return nil }, values(t, `{"l":[`+strings.Repeat("1,", 99)+`1]}`))
	require.NoError(t, err)
	require.True(t, matched)
	require.Greater(t, steps, 1_000, "one step for some calls")

	enough := errors.New("no time is left for this image")
	steps = 0
	matched, err = compiled.Match(func() error {
		if steps++; steps > 3 {
			return enough
		}
		return nil
	}, values(t, `{"l":[`+strings.Repeat("1,", 99)+`1]}`))
	require.ErrorIs(t, err, enough)
	require.False(t, matched)
	require.Equal(t, 4, steps)

	flat, err := cel.Compile(joined("predicate == predicate", "&&", 100), variables, cel.Fields{})
	require.NoError(t, err)
	steps = 0
	_, err = flat.Match(func() error { steps++; return nil }, values(t, `{"l":[1]}`))
	require.NoError(t, err)
	require.Greater(t, steps, 5, "without a loop, too")
}

// BenchmarkCostliestExpression measures the most that one expression can cost before the
// limit ends it.
func BenchmarkCostliestExpression(b *testing.B) {
	compiled, err := cel.Compile("predicate.l.all(a, predicate.l.all(b, predicate.l.all(c, a * b * c >= 0)))", variables, cel.Fields{})
	require.NoError(b, err)
	large := values(b, `{"l":[`+strings.Repeat("1,", 999)+`1]}`)
	for b.Loop() {
		_, err := compiled.Match(nil, large)
		require.Error(b, err)
	}
}
