package cel

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAlternativesOfMeetingAnExpressionAreTheComparisonsWithConstants(t *testing.T) {
	variables := Variables{"subject": Text, "claims": Any}
	for expression, want := range map[string][][]Comparison{
		`subject == "a.b"`: {{{"subject", `a\.b`}}},
		`"a" == subject`:   {{{"subject", "a"}}},
		`subject.startsWith("a") && claims.x.endsWith("b")`:        {{{"subject", "a.*"}, {"claims.x", ".*b"}}},
		`subject.contains("a") || claims["x"].matches("^b")`:       {{{"subject", ".*a.*"}}, {{"claims.x", ".*(?:^b).*"}}},
		`subject in ["a", "b"]`:                                    {{{"subject", "a"}}, {{"subject", "b"}}},
		`["a", "b"].exists(s, subject.startsWith(s))`:              {{{"subject", "a.*"}}, {{"subject", "b.*"}}},
		`has(claims.x) ? claims.?x.orValue("") == "a" : "" != "a"`: {{{"claims.x", "a"}}, nil},
		`!subject.contains("a")`:                                   {nil},
		`subject == claims.x`:                                      {nil},
		`["a"].all(s, subject == s)`:                               {nil},
		`true`:                                                     {nil},
		`subject ==`:                                               nil,
	} {
		require.Equal(t, want, Alternatives(expression, variables), expression)
	}
}

func TestAlternativesAreBounded(t *testing.T) {
	found := Alternatives(strings.Repeat(`(subject == "a" || subject == "b") && `, 50)+"true", Variables{"subject": Text})
	require.Len(t, found, maxAlternatives)
	for _, alternative := range found {
		require.LessOrEqual(t, len(alternative), maxComparisons)
	}
}

// Four loops are as many as an expression may nest, and a thousand parts leave some 230 constants for each.
func TestAlternativesOfLoopsInLoopsAreNotAllLookedAt(t *testing.T) {
	list := "[" + strings.Repeat(`"a",`, 229) + `"a"]`
	for _, nothing := range []string{`subject in []`, `[1].exists(e, e == 1)`, `subject != "a"`, `true`} {
		expression := nothing
		for _, name := range []string{"a", "b", "c", "d"} {
			if strings.Contains(nothing, "exists") && name == "d" {
				break
			}
			expression = list + ".exists(" + name + ", " + expression + ")"
		}
		_, err := Compile(expression, Variables{"subject": Text}, Fields{})
		require.NoError(t, err, "a Verifier can have it")
		require.LessOrEqual(t, len(Alternatives(expression, Variables{"subject": Text})), maxAlternatives)
	}
}
