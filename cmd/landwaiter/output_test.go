package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestVerifySaysWhichExceptionAllowsAnImage(t *testing.T) {
	plain := verify.Result{Verdict: judged.As(policy.Allowed, policy.Verdict{})}
	require.Nil(t, printable("app", plain).Exception)
	plain.Exception, plain.ExceptionEnds = policy.ObjectRef{Kind: "Exception", Namespace: "team-a", Name: "x"},
		time.Date(2026, 11, 23, 1, 0, 0, 0, time.FixedZone("CET", 3600))
	require.Equal(t, &printedException{printedRef{Kind: "Exception", Namespace: "team-a", Name: "x"}, "2026-11-23T00:00:00Z"}, printable("app", plain).Exception)
}

func TestALocationSaysWhatItsRegistryLacks(t *testing.T) {
	for want, l := range map[string]verify.Looked{
		"-":                                    {Repository: "r.example.com/app"},
		"the registry lacks the referrers API": {Lacks: "the referrers API"},
		"connection refused":                   {Lacks: "the referrers API", Err: "connection refused"},
	} {
		require.Equal(t, want, printableLocation(l).note())
	}
}
