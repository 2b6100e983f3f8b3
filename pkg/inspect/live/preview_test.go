package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestAnImageBreaksIfItIsLetInNowAndWouldBeDenied(t *testing.T) {
	verdicts := map[verify.Answer]policy.Verdict{
		verify.AnswerAllowed: {Outcome: policy.Allowed},
		verify.AnswerWarned:  {Outcome: policy.Allowed, Warning: "no signature"},
		verify.AnswerDenied:  {Outcome: policy.Denied},
		Unknown:              {Outcome: policy.Undecided},
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
