package cel

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWaysOfMeetingAnExpressionAreTheComparisonsWithConstants(t *testing.T) {
	variables := Variables{"subject": Text, "claims": Any}
	for expression, want := range map[string][][]Clue{
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
		require.Equal(t, want, Ways(expression, variables), expression)
	}
}

func TestWaysAreBounded(t *testing.T) {
	found := Ways(strings.Repeat(`(subject == "a" || subject == "b") && `, 50)+"true", Variables{"subject": Text})
	require.Len(t, found, maxWays)
	for _, way := range found {
		require.LessOrEqual(t, len(way), maxClues)
	}
}
