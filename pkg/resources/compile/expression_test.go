package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestAnExpressionOverAFieldThatNoFindingHasBreaksThePolicy(t *testing.T) {
	for expression, want := range map[string]string{
		`findings.exists(f, f.sgner == 'a')`:       "did you mean signer?",
		`!findings.exists(f, has(f.artifactTyp))`:  "did you mean artifactType?",
		`findings.exists(f, f.facts.issuer == '')`: "",
	} {
		_, problems := written.Compiled(written.Objects(t, written.Namespace("a", "1"),
			written.Object("VerificationPolicy", "a", "p", `rules: [{images: ["**"], require: [{expression: "`+expression+`"}]}]`)))
		said := ""
		for _, p := range problems {
			said += p.Message
		}
		if want == "" {
			require.Empty(t, said)
			continue
		}
		require.Contains(t, said, "spec.rules[0].require[0].expression: ")
		require.Contains(t, said, want)
	}
}
