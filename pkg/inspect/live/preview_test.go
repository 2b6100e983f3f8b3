package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestAnImageBreaksIfItIsLetInNowAndWouldBeDenied(t *testing.T) {
	verdicts := map[verify.Answer]policy.Verdict{
		verify.AnswerAllowed: judged.As(policy.Allowed, policy.Verdict{}),
		verify.AnswerWarned:  judged.As(policy.Allowed, policy.Verdict{Warning: "no signature"}),
		verify.AnswerDenied:  {},
		Unknown:              policy.NotDecided(policy.ObjectRef{}, ""),
	}
	for from, before := range verdicts {
		for to, after := range verdicts {
			row := Row{Before: verify.Result{Verdict: before}, After: verify.Result{Verdict: after}}
			require.Equal(t, from, row.From())
			require.Equal(t, to, row.To())
			require.Equal(t, to == verify.AnswerDenied && (from == verify.AnswerAllowed || from == verify.AnswerWarned), row.Breaks(), "%s to %s", from, to)
		}
	}
}
