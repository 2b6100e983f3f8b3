package cel

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommonFindsATextThatBothMatch(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want string
		none bool
	}{
		"two literals":           {a: "abc", b: "abc", want: "abc"},
		"different literals":     {a: "abc", b: "abd", none: true},
		"one is longer":          {a: "abc", b: "abcd", none: true},
		"anything":               {a: ".*", b: "abc", want: "abc"},
		"the shortest":           {a: "a+", b: "a{3,}", want: "aaa"},
		"alternatives":           {a: "(x|abc|y)", b: "ab.", want: "abc"},
		"classes":                {a: "[a-f]+", b: "[f-z]{2}", want: "ff"},
		"classes apart":          {a: "[a-e]+", b: "[f-z]+", none: true},
		"case is ignored":        {a: "(?i)ABC", b: "[a-z]+", want: "abc"},
		"anchors inside":         {a: "^abc$", b: "abc", want: "abc"},
		"an anchor in the way":   {a: "a^bc", b: "abc", none: true},
		"words":                  {a: `ab\b.*`, b: "ab[c-]d", want: "ab-d"},
		"no word":                {a: `ab\B.*`, b: "ab[c-]d", want: "abcd"},
		"nothing":                {a: "", b: "a*", want: ""},
		"a negated class":        {a: "[^/]+", b: ".*b", want: "b"},
		"letters before marks":   {a: ".", b: `[-a]`, want: "a"},
		"nothing outside ASCII":  {a: "[é]", b: ".", none: true},
		"no new line in a text":  {a: `a\nb`, b: "(?s)a.b", none: true},
		"the end of a line":      {a: `(?m)abc$`, b: "abc", want: "abc"},
		"a class with ignoring":  {a: "(?i)[a-c]+", b: "ABC", want: "ABC"},
		"a letter with 3 cases":  {a: "(?i)k", b: "K", want: "K"},
		"several ways to end":    {a: "(ab|abab)", b: "(ab){2}", want: "abab"},
		"an alternative of none": {a: "x(|y)", b: "x[z]?", want: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := NewPattern(c.a)
			require.NoError(t, err)
			b, err := NewPattern(c.b)
			require.NoError(t, err)
			for _, pair := range [][2]*Pattern{{a, b}, {b, a}} {
				steps := 10_000
				text, ok := pair[0].Common(pair[1], &steps)
				require.Equal(t, !c.none, ok)
				require.Equal(t, c.want, text)
				require.Positive(t, steps)
			}
		})
	}
}

func TestCommonEndsAfterItsSteps(t *testing.T) {
	a, err := NewPattern("(a|b|c)*d{200}")
	require.NoError(t, err)
	b, err := NewPattern("(a|b)*e{200}")
	require.NoError(t, err)
	steps := 100
	_, ok := a.Common(b, &steps)
	require.False(t, ok)
	require.GreaterOrEqual(t, steps, -1000)
}

func TestAPatternIsAsBoundedAsAnyExpression(t *testing.T) {
	_, err := NewPattern("(a{1000}){1000}")
	require.Error(t, err)
	_, err = NewPattern("(")
	require.ErrorContains(t, err, "cannot be read")
}

func FuzzCommonIsMatchedByBoth(f *testing.F) {
	for _, pair := range [][2]string{{"a.*b", "[a-c]+"}, {`\bx\B`, "(?i)X"}, {"(?m)^a$", "a|b"}, {"(a|ab)(c|bcd)", "a.*d"}, {"[^a]*", "é?"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		a, err := NewPattern(one)
		if err != nil {
			return
		}
		b, err := NewPattern(two)
		if err != nil {
			return
		}
		steps := 20_000
		text, ok := a.Common(b, &steps)
		if !ok {
			return
		}
		for _, expression := range []string{one, two} {
			require.Regexp(t, regexp.MustCompile(`\A(?:`+expression+`)\z`), text, expression)
		}
	})
}
