package lint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/lint"
)

func TestWhatAnAPIServerWouldRefuseIsNamedWithObjectAndField(t *testing.T) {
	const sound = "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: strict}\nspec: {rules: [{images: [\"**\"], action: Allow}]}\n"
	for name, c := range map[string]struct{ text, says string }{
		"an unknown field":        {strings.Replace(sound, "spec: {", "spec: {rulez: [], ", 1), "VerificationPolicy team-a/strict: spec.rulez"},
		"a value that is not one": {strings.Replace(sound, "Allow", "Perhaps", 1), "VerificationPolicy team-a/strict: spec.rules[0].action"},
		"a kind that is not one":  {strings.Replace(sound, "VerificationPolicy", "VerifyingPolicy", 1), "has no kind VerifyingPolicy"},
		"an object twice":         {sound + "---\n" + sound, "VerificationPolicy team-a/strict"},
		"no YAML":                 {"{", "standard input"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := lint.ReadSound(t.Context(), "team-a", []string{"-"}, strings.NewReader(c.text))
			require.ErrorContains(t, err, c.says)
		})
	}
	objects, others, err := lint.ReadSound(t.Context(), "team-a", []string{"-"},
		strings.NewReader(sound+"---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n"))
	require.NoError(t, err)
	require.Equal(t, 1, others)
	require.Equal(t, "team-a", objects.Resources[0].GetNamespace(), "objects without a namespace are in the given one")
}

func TestSaysOnceAtWhichLineAnObjectCannotBeRead(t *testing.T) {
	const head = "apiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: v, namespace: a}\n"
	for text, says := range map[string]string{
		"{":                               "standard input:1: did not find expected node content",
		"# a\n---\nkind: [":               "standard input:3: did not find expected node content",
		"a: b\u2028c: d":                  "standard input:1: the control character '\\u2028'; remove it or write it as an escape in double quotes",
		head + "spec: !!binary x\n":       "standard input:4: the tag !!binary is not supported; remove it",
		head + "spec: {type: A, type: B}": `standard input:4: Verifier a/v: the key "type" is given twice; remove one`,
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, kind: Pod}]": "standard input:1: item 1 (line 3): kind is given twice",
	} {
		_, _, err := lint.ReadSound(t.Context(), "a", []string{"-"}, strings.NewReader(text))
		require.ErrorContains(t, err, says, text)
	}
}
