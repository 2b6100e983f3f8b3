package verify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestARefreshReverifiesUnderTheSameKeys(t *testing.T) {
	for _, spelling := range []string{"r.example.com/app@" + appDigest.String(), "r.example.com/app:v1"} {
		t.Run(spelling[:19], func(t *testing.T) {
			r, kept := newRegistry(), newCache()
			r.tags["v1"] = appDigest
			r.manifest(t, true, "k1:"+appDigest.String())
			e, c, app := engine(kept, verify.Options{}), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, spelling)
			first := e.Warm(t.Context(), c, app)
			require.Equal(t, policy.Allowed, first.Verdict.Outcome())
			require.False(t, first.Cached)
			keys, lists, resolves := len(kept.entries), r.called("list"), r.called("resolve")
			require.True(t, e.Warm(t.Context(), c, app).Cached, "warming answers from the cache")
			require.True(t, e.Verify(t.Context(), c, app).Cached)
			require.Equal(t, lists, r.called("list"))

			again := e.Refresh(t.Context(), c, app)
			require.False(t, again.Cached)
			require.Equal(t, first.Verdict, again.Verdict)
			require.Equal(t, 2*lists, r.called("list"))
			require.Equal(t, 2*resolves, r.called("resolve"))
			require.Len(t, kept.entries, keys, "no key but Verify's")
			for key := range kept.entries {
				delete(kept.entries, key)
			}
			require.False(t, e.Refresh(t.Context(), c, app).Cached)
			require.Len(t, kept.entries, keys)
			require.True(t, e.Verify(t.Context(), c, app).Cached)
			recalled, ok := e.Recall(c, app)
			require.True(t, ok)
			require.Equal(t, first.Verdict, recalled.Verdict)
		})
	}
}

func TestARefreshFollowsTheTag(t *testing.T) {
	r := newRegistry()
	r.tags["v1"] = appDigest
	r.manifest(t, true, "k1:"+appDigest.String())
	e, c, app := engine(newCache(), verify.Options{}), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app:v1")
	require.Equal(t, policy.Allowed, e.Verify(t.Context(), c, app).Verdict.Outcome())
	r.tags["v1"] = digest.FromString("unsigned")
	require.Equal(t, policy.Denied, e.Refresh(t.Context(), c, app).Verdict.Outcome())
	require.Equal(t, policy.Denied, e.Verify(t.Context(), c, app).Verdict.Outcome())
}

// An Undecided refresh leaves the cached verdict, and any other replaces it, as with
// Verify: only proven images are ever allowed.
// What a certificate, the end of a signature or an expression with now says, time alone can change.
func TestAVerdictIsKeptNoLongerThanItsProofsHold(t *testing.T) {
	began := time.Now()
	for name, c := range map[string]struct {
		until [2]time.Time // of the proofs of two verifiers
		want  time.Duration
	}{
		"for ever":               {[2]time.Time{}, verify.DefaultPassTTL},
		"longer than the cache":  {[2]time.Time{began.Add(2 * time.Hour)}, verify.DefaultPassTTL},
		"shorter than the cache": {[2]time.Time{began.Add(time.Minute), began.Add(time.Hour)}, time.Minute},
		"the other one ends":     {[2]time.Time{{}, began.Add(time.Second)}, time.Second},
		"no longer":              {[2]time.Time{began, {}}, 0},
		"it ended meanwhile":     {[2]time.Time{began.Add(-time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, kept := newRegistry(), newCache()
			r.manifest(t, true, "k1:"+appDigest.String())
			a, b := verifier(t, "a", "k1"), verifier(t, "b", "k1")
			a.Checker.(*checker).until, b.Checker.(*checker).until = c.until[0], c.until[1]
			both := verify.Requirement{AllOf: []string{"a", "b"}, AtLeast: 1}
			e := verify.NewEngine(kept, func() time.Time { return began }, verify.Options{})
			own, app := config(tier(t, r, both, a, b)), ref(t, "r.example.com/app@"+appDigest.String())
			require.Equal(t, policy.Allowed, e.Verify(t.Context(), own, app).Verdict.Outcome())
			require.Equal(t, c.want, kept.ttl())
			_, ok := e.Recall(own, app)
			require.Equal(t, c.want > 0, ok)
		})
	}
}

func TestARefreshNeverWeakensWhatIsCached(t *testing.T) {
	down := errors.New("registry answered 503")
	for name, c := range map[string]struct {
		signed, signedLater bool
		fails               error
		panics              bool
		refreshed, after    policy.Outcome
	}{
		"allowed, the registry is down":     {signed: true, signedLater: true, fails: down, refreshed: policy.Undecided, after: policy.Allowed},
		"denied, the registry is down":      {fails: down, refreshed: policy.Undecided, after: policy.Denied},
		"denied, signed, the registry down": {fails: down, panics: true, refreshed: policy.Undecided, after: policy.Denied},
		"allowed, the signature is gone":    {signed: true, refreshed: policy.Denied, after: policy.Denied},
		"denied, then signed":               {signedLater: true, refreshed: policy.Allowed, after: policy.Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			if c.signed {
				r.manifest(t, true, "k1:"+appDigest.String())
			}
			e, configured, app := engine(newCache(), verify.Options{}), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app@"+appDigest.String())
			require.Equal(t, c.signed, e.Verify(t.Context(), configured, app).Verdict.Outcome() == policy.Allowed)
			r.listed = nil
			if c.signedLater && c.fails == nil {
				r.manifest(t, true, "k1:"+appDigest.String())
			}
			r.list = func(context.Context) error {
				if c.panics {
					panic("boom")
				}
				return c.fails
			}
			require.Equal(t, c.refreshed, e.Refresh(t.Context(), configured, app).Verdict.Outcome())
			result := e.Verify(t.Context(), configured, app)
			require.True(t, result.Cached)
			require.Equal(t, c.after, result.Verdict.Outcome())
		})
	}
}

func TestARefreshLeavesHalfOfTheCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		options verify.Options
		given   int // by ClusterLimits
		held    int // by admissions, of the same namespace
		room    bool
	}{
		"of all":                  {options: verify.Options{InFlight: 8, InFlightPerAccount: 100}, held: 4},
		"of all, one less":        {options: verify.Options{InFlight: 8, InFlightPerAccount: 100}, held: 3, room: true},
		"of its own":              {options: verify.Options{InFlight: 100, InFlightPerAccount: 4}, held: 2},
		"of its own, one less":    {options: verify.Options{InFlight: 100, InFlightPerAccount: 4}, held: 1, room: true},
		"of its own limit":        {options: verify.Options{InFlight: 100, InFlightPerAccount: 4}, given: 8, held: 4},
		"of its own limit, fewer": {options: verify.Options{InFlight: 100, InFlightPerAccount: 4}, given: 8, held: 3, room: true},
		"of a single one":         {options: verify.Options{InFlight: 1, InFlightPerAccount: 1}, room: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r.list = func(context.Context) error { <-ctx.Done(); return ctx.Err() }
			e, configured := engine(newCache(), c.options), config(tier(t, r, anyA, verifier(t, "a", "k1")))
			configured.Limits.InFlight = c.given
			for i := range c.held {
				go e.Verify(ctx, configured, ref(t, "r.example.com/app@"+digest.FromString(string(rune('a'+i))).String()))
			}
			require.Eventually(t, func() bool { return r.called("list") == c.held }, time.Minute, time.Millisecond)
			limited, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			answered := make(chan verify.Result, 1)
			go func() { answered <- e.Refresh(limited, configured, ref(t, "r.example.com/app@"+appDigest.String())) }()
			if c.room {
				require.Eventually(t, func() bool { return r.called("list") == c.held+1 }, time.Minute, time.Millisecond)
				return
			}
			result := <-answered
			require.Equal(t, policy.Undecided, result.Verdict.Outcome())
			require.True(t, result.Overloaded)
			require.Equal(t, c.held, r.called("list"))
			require.True(t, e.Warm(limited, configured, ref(t, "r.example.com/app@"+appDigest.String())).Overloaded)
		})
	}
}

func TestARefreshAndAnAdmissionShareTheWork(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	release := make(chan struct{})
	r.list = func(context.Context) error { <-release; return nil }
	e, c, app := engine(newCache(), verify.Options{}), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app@"+appDigest.String())
	results := make(chan verify.Result, 2)
	go func() { results <- e.Refresh(t.Context(), c, app) }()
	require.Eventually(t, func() bool { return r.called("list") == 1 }, time.Minute, time.Millisecond)
	left, leave := context.WithCancel(t.Context())
	leave()
	require.Equal(t, policy.Undecided, e.Verify(left, c, app).Verdict.Outcome(), "it joined, and left")
	go func() { results <- e.Verify(t.Context(), c, app) }()
	close(release)
	for range 2 {
		require.Equal(t, policy.Allowed, (<-results).Verdict.Outcome())
	}
	require.Equal(t, 1, r.called("list"))
}
