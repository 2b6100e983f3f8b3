package verify_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

const share = verify.DefaultEvidenceBytes / 9 * 5

// holding returns a configuration for an image with so many signatures, the last of which is by a trusted key, and
// whose checks hold memory.
func holding(t *testing.T, signatures int, hold func(context.Context) error) *verify.Config {
	t.Helper()
	r := newRegistry()
	for range signatures - 1 {
		r.manifest(t, true, "stranger")
	}
	r.manifest(t, true, "k1:"+appDigest.String())
	v := verifier(t, "a", "k1")
	v.Checker.(*checker).hold = hold
	c := config(tier(t, r, anyA, v))
	c.Namespace = "team-a"
	return c
}

func TestACheckThatTakesMoreMemoryThanAnImageMayIsDeniedAndNamesTheSetting(t *testing.T) {
	for name, hold := range map[string]func(context.Context) error{
		"at once": func(ctx context.Context) error { return verify.Hold(ctx, share+1) },
		"in two": func(ctx context.Context) error {
			if err := verify.Hold(ctx, share/2); err != nil {
				return err
			}
			return verify.Hold(ctx, share/2+1)
		},
	} {
		e := engine(newCache(), verify.Options{})
		result := e.Verify(t.Context(), holding(t, 1, hold), ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Denied, result.Verdict.Outcome(), name)
		require.Equal(t, policy.ReasonLimitExceeded, result.Findings[0].Reason, name)
		require.Contains(t, result.Findings[0].Remediation, "--limit evidence-bytes", name)
		result = e.Verify(t.Context(), holding(t, 1, nil), ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Denied, result.Verdict.Outcome(), "it is cached")
	}
}

// However many large attestations an image has, and in whatever order they come: all are read.
func TestLargeChecksOfOneImageWaitForEachOther(t *testing.T) {
	var held, most atomic.Int64
	c := holding(t, 8, func(ctx context.Context) error {
		if err := verify.Hold(ctx, share/2); err != nil {
			return err
		}
		n := held.Add(1)
		most.Store(max(most.Load(), n))
		defer held.Add(-1)
		for range 100 {
			if err := verify.Step(ctx); err != nil { // others go first
				return err
			}
		}
		return verify.Hold(ctx, share/4)
	})
	result := engine(newCache(), verify.Options{Processors: 4}).Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Allowed, result.Verdict.Outcome(), result.Verdict.Reason)
	require.Equal(t, int64(1), most.Load())
}

// Whatever memory evidence of others takes, and however large their checks are: one waits for the other, and none is
// refused.
func TestLargeChecksOfSeveralImagesAndAccountsWaitForEachOther(t *testing.T) {
	e := engine(newCache(), verify.Options{Processors: 4})
	busy, release := make(chan struct{}), make(chan struct{})
	first := holding(t, 1, func(ctx context.Context) error {
		if err := verify.Hold(ctx, share); err != nil {
			return err
		}
		close(busy)
		<-release
		return nil
	})
	image := ref(t, "r.example.com/app@"+appDigest.String())
	done := make(chan verify.Result, 4)
	go func() { done <- e.Verify(t.Context(), first, image) }()
	<-busy
	for _, namespace := range []verify.Namespace{"team-a", "team-b", "team-c"} {
		c := holding(t, 1, func(ctx context.Context) error {
			if err := verify.Hold(ctx, share/2); err != nil {
				return err
			}
			return verify.Hold(ctx, share/2)
		})
		c.Namespace, c.Generation = namespace, "another"
		go func() { done <- e.Verify(t.Context(), c, image) }()
	}
	small := holding(t, 1, func(ctx context.Context) error { return verify.Hold(ctx, 1<<20) })
	small.Namespace = "quiet"
	require.Equal(t, policy.Allowed, e.Verify(t.Context(), small, image).Verdict.Outcome(), "a small check waits for nobody")
	close(release)
	for range 4 {
		result := <-done
		require.Equal(t, policy.Allowed, result.Verdict.Outcome(), result.Verdict.Reason)
	}
}

func TestSmallChecksWithoutMemoryAreUndecided(t *testing.T) {
	e := engine(newCache(), verify.Options{EvidenceBytes: 64 << 10})
	c := holding(t, 1, func(ctx context.Context) error { return verify.Hold(ctx, 128<<10) })
	result := e.Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Undecided, result.Verdict.Outcome(), result.Verdict.Reason)
	require.True(t, result.Overloaded)
}

func TestWaitingForALargeCheckEndsWithTheRequest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	release := make(chan struct{})
	c := holding(t, 4, func(ctx context.Context) error {
		if err := verify.Hold(ctx, share/2); err != nil {
			return err
		}
		<-release
		return nil
	})
	result := engine(newCache(), verify.Options{Processors: 4, WorkTimeout: 100 * time.Millisecond}).
		Verify(ctx, c, ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Undecided, result.Verdict.Outcome(), result.Verdict.Reason)
	close(release)
}
