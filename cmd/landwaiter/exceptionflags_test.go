package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

func TestFlagsSayHowLongExceptionsLastAndBreakGlassIsOffUnlessAskedFor(t *testing.T) {
	for name, row := range map[string]struct {
		flags exceptionFlags
		want  service.ExceptionLimits
		says  string
	}{
		"without break-glass":     {exceptionFlags{longest: time.Hour, longestDelegation: time.Hour, longestBreakGlass: time.Hour}, service.ExceptionLimits{Max: time.Hour, Delegation: time.Hour}, ""},
		"with it":                 {exceptionFlags{longest: time.Hour, longestDelegation: time.Hour, longestBreakGlass: time.Minute, breakGlass: true}, service.ExceptionLimits{Max: time.Hour, Delegation: time.Hour, BreakGlass: time.Minute}, ""},
		"no exceptions":           {exceptionFlags{longestDelegation: time.Hour, longestBreakGlass: time.Hour}, service.ExceptionLimits{}, "--max-exception is 0s"},
		"no delegations":          {exceptionFlags{longest: time.Hour, longestBreakGlass: time.Hour}, service.ExceptionLimits{}, "--max-delegation is 0s"},
		"break-glass of no time":  {exceptionFlags{longest: time.Hour, longestDelegation: time.Hour, breakGlass: true}, service.ExceptionLimits{}, "--max-break-glass is 0s"},
		"exceptions of less time": {exceptionFlags{longest: -1, longestDelegation: time.Hour, longestBreakGlass: time.Hour}, service.ExceptionLimits{}, "--max-exception is -1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.flags.limits()
			if row.says != "" {
				require.ErrorContains(t, err, row.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestVerifySaysWhichExceptionAllowsAnImage(t *testing.T) {
	plain := verify.Result{Verdict: policy.Verdict{Outcome: policy.Allowed}}
	require.Nil(t, printable("app", plain).Exception)
	plain.Exception, plain.ExceptionEnds = policy.ObjectRef{Kind: "Exception", Namespace: "team-a", Name: "x"}, time.Date(2026, 11, 23, 1, 0, 0, 0, time.FixedZone("CET", 3600))
	require.Equal(t, &printedException{printedRef{Kind: "Exception", Namespace: "team-a", Name: "x"}, "2026-11-23T00:00:00Z"}, printable("app", plain).Exception)
}
