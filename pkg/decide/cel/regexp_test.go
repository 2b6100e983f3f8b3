package cel_test

import (
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

func TestRefusesAShortExpressionThatCompilesToALargeProgram(t *testing.T) {
	for _, expression := range []string{
		"(?:" + strings.Repeat("a", 900) + "){1000}", "((((a{10}){10}){10}){3}){2}", `(?:abc){1000}`, `^\pL{900}$`, `^(?:\pL?){490}$`, "(?:a?b?c?){900}",
		"(?i)(?:[a-z]x){999}",
	} {
		_, err := cel.RegexpSize(expression)
		require.Error(t, err, expression)
		require.Regexp(t, "the limit is|cannot be read", err.Error())
	}
}

// Each of these takes between 0.1 and 0.7 seconds only to parse.
func TestRefusesAnExpressionThatIsSlowToParse(t *testing.T) {
	for expression, want := range map[string]string{
		"(?i)[" + strings.Repeat("B-\U0001e942", 160) + "]":  "outside of ASCII",
		`(?i)` + strings.Repeat(`[B-\x{1e942}]`, 70):         "outside of ASCII",
		"a(?m-s:b)(?is:" + strings.Repeat("[B-𞥂]", 70) + ")": "outside of ASCII",
		"^(?:" + strings.Repeat(`\pL|`, 250) + "x)$":         "Unicode classes",
		"[" + strings.Repeat(`\PL`, 300) + "]":               "Unicode classes",
		strings.Repeat("a", cel.MaxRegexpLength+1):           "the limit is 1024",
		"(": "cannot be read",
	} {
		_, err := cel.RegexpSize(expression)
		require.ErrorContains(t, err, want, "%.40s", expression)
	}
}

func TestAcceptsTheExpressionsOfIdentities(t *testing.T) {
	for _, expression := range []string{
		`^https://github\.com/[^/]+/[^/]+/\.github/workflows/.+@refs/tags/v[0-9]+\.[0-9]+\.[0-9]+$`, `.*@example\.com`, `(?i)ci-[a-z]{1,63}@example\.com`,
		`https://gitlab\.example\.com/(?:team-a|team-b)/.*//\.gitlab-ci\.yml@refs/heads/(main|release-\d{1,3})`, strings.Repeat("a", cel.MaxRegexpLength), `\p{L}+@\p{L}+`, "Ü(?P<i>x)", "",
	} {
		_, err := cel.RegexpSize(expression)
		require.NoError(t, err, expression)
	}
}

// What an accepted expression keeps is within what Bytes says, whatever its shape.
func TestAnAcceptedExpressionKeepsNoMoreThanItsSizeSays(t *testing.T) {
	for _, expression := range worstRegexps() {
		size, err := cel.RegexpSize(expression)
		require.NoError(t, err, expression)
		const copies = 20
		all := make([]*regexp.Regexp, copies)
		before := memory.InUse()
		for i := range all {
			all[i] = regexp.MustCompile(expression)
		}
		kept := (memory.InUse() - before) / copies
		runtime.KeepAlive(all)
		require.LessOrEqual(t, kept, cel.RegexpBytes(size), "%.40s", expression)
	}
}

// worst are accepted expressions that keep the most, each of another shape.
func worstRegexps() []string {
	return []string{
		strings.Repeat("a", cel.MaxRegexpLength), "^(?:" + strings.Repeat("a", 900) + ")$", "(?:a{100}){9}", "^(?:a{1000})$", `^\pL{10}$`,
		`^(?:` + strings.Repeat(`\pL`, 8) + `)$`, `^(?:[a-cx-z0-9]{2}){300}$`,
		`^(?:(?:a|b|c|d|e|f|g){2}){100}$`, "^(?:a?){600}$", "^(?:" + strings.Repeat("(?:abc|xyz)", 90) + ")$", "(" + strings.Repeat("a|", 400) + "b)",
		"^(?:" + strings.Repeat("(a)", 300) + ")$",
	}
}

// FuzzSize holds the bound against the real program.
func FuzzSize(f *testing.F) {
	for _, expression := range append(worstRegexps(), `(a|b)*c+d?e{2,}f{0}[^x]\b$`, "((a*)*)*", "(?i)(?s:.)x{3,7}", "[a-c]{0,5}|") {
		f.Add(expression)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		size, err := cel.RegexpSize(expression)
		if err != nil {
			return
		}
		parsed, err := syntax.Parse(expression, syntax.Perl)
		require.NoError(t, err)
		program, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err)
		require.LessOrEqual(t, len(program.Inst), size+2, "with the program's own two: %q", expression)
	})
}
