package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestAnImageBreaksIfItIsLetInNowAndWouldBeDenied(t *testing.T) {
	verdicts := map[Answer]policy.Verdict{
		Allowed: {Outcome: policy.Allowed},
		Warned:  {Outcome: policy.Allowed, Warning: "no signature"},
		Denied:  {Outcome: policy.Denied},
		Unknown: {Outcome: policy.Undecided},
	}
	for from, before := range verdicts {
		for to, after := range verdicts {
			row := Row{Before: verify.Result{Verdict: before}, After: verify.Result{Verdict: after}}
			require.Equal(t, from, row.From())
			require.Equal(t, to, row.To())
			require.Equal(t, to == Denied && (from == Allowed || from == Warned), row.Breaks(), "%s to %s", from, to)
		}
	}
}
