package verify_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// remote is a cache that asks a server for verdicts.
type remote struct{ *cache }

func (r remote) Get(ctx context.Context, key verify.Key) (verify.Entry, bool) {
	if key.Kind == verify.KindVerdict {
		defer verify.StartStage(ctx, "remote")()
	}
	return r.cache.Get(ctx, key)
}

func TestStagesSayWhenTheyBeganWhoseTheyAreAndThatACacheWasAsked(t *testing.T) {
	r := newRegistry()
	r.tags["v1"] = appDigest
	r.manifest(t, true, "k1:"+appDigest.String())
	e, c, app := engine(remote{newCache()}, verify.Options{}), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app:v1")
	began := time.Now()
	result := e.Verify(t.Context(), c, app)
	require.Equal(t, policy.Allowed, result.Verdict.Outcome())
	stages := map[string]verify.Stage{}
	for _, s := range result.Stages {
		require.False(t, s.Began.Before(began), s.Name)
		require.GreaterOrEqual(t, s.Duration, time.Duration(0), s.Name)
		stages[s.Name] = s
	}
	for _, name := range []string{"resolve", "remote", "list", "check", "decide"} {
		require.Contains(t, stages, name)
	}
	require.Equal(t, "Verifier team-a/a", stages["check"].Verifier.String())
	require.Empty(t, stages["list"].Verifier)

	again := e.Verify(t.Context(), c, app)
	require.True(t, again.Cached)
	require.Len(t, again.Stages, 1, "the cache was asked, and nothing else")
	require.Equal(t, "remote", again.Stages[0].Name)
	recalled, known := e.Recall(c, app)
	require.True(t, known)
	require.Empty(t, recalled.Stages)
	require.NotPanics(t, verify.StartStage(t.Context(), "of nothing"), "outside a verification it does nothing")
}
