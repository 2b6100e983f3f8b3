package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

var began = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func verdict(v policy.Verdict) verify.Result { return verify.Result{Digest: "sha256:1", Verdict: v} }

var (
	allowed   = verdict(policy.Verdict{Outcome: policy.Allowed})
	denied    = verdict(policy.Verdict{Outcome: policy.Denied, Policy: policy.ObjectRef{Kind: "ClusterVerifier", Name: "release"}, Reason: "the key is not trusted", Remediation: "sign it"})
	excepted  = verify.Result{Verdict: policy.Verdict{Outcome: policy.Allowed, Unverified: true}, Exception: policy.ObjectRef{Kind: "ClusterException", Name: "hotfix"}, ExceptionEnds: began.Add(time.Hour)}
	undecided = verdict(policy.Verdict{Outcome: policy.Undecided, Reason: "the registry does not answer"})
)

func TestVerdictsBecomeTheWordsOfReports(t *testing.T) {
	for word, v := range map[string]policy.Verdict{
		"pass":  {Outcome: policy.Allowed},
		"skip":  {Outcome: policy.Allowed, Unverified: true},
		"error": {Outcome: policy.Undecided},
		"fail":  {},
	} {
		require.Equal(t, word, resultOf(verdict(v)))
	}
	require.Equal(t, "warn", resultOf(verdict(policy.Verdict{Outcome: policy.Allowed, Warning: "unsigned", Unverified: true})))
	require.Equal(t, "warn", resultOf(excepted))
	require.Equal(t, "fail", resultOf(verdict(policy.Verdict{Outcome: policy.Outcome(9)})), "what nobody knows is not allowed")
}

// follow returns the states after results, a minute apart.
func follow(results ...verify.Result) (states []state, revoked int) {
	var s state
	for i, r := range results {
		var gone bool
		if s, gone = s.next(r, began.Add(time.Duration(i)*time.Minute)); gone {
			revoked++
		}
		states = append(states, s)
	}
	return states, revoked
}

func at(minute int) time.Time { return began.Add(time.Duration(minute) * time.Minute) }

func TestSinceIsWhenTheVerdictBeganToBeWhatItIs(t *testing.T) {
	states, revoked := follow(allowed, allowed, denied, denied, allowed)
	var since []time.Time
	for _, s := range states {
		since = append(since, s.since)
	}
	require.Equal(t, []time.Time{at(0), at(0), at(2), at(2), at(4)}, since)
	require.Equal(t, 1, revoked)
	require.Equal(t, "ClusterVerifier release", states[2].policy)
	require.Equal(t, "the key is not trusted", states[2].reason)
	require.Equal(t, "sign it", states[2].remediation)
}

func TestAnImageThatWasNeverAllowedIsNotRevoked(t *testing.T) {
	_, revoked := follow(denied, undecided, denied)
	require.Zero(t, revoked)
}

func TestAShortOutageOfARegistryChangesNothing(t *testing.T) {
	states, revoked := follow(allowed, undecided, undecided, allowed)
	for _, s := range states {
		require.Equal(t, "pass", s.result)
		require.Equal(t, at(0), s.since)
	}
	require.Zero(t, revoked)
	require.True(t, states[3].doubted.IsZero(), "the next outage begins again")
}

func TestALongOutageIsAnErrorThatRemembersTheLastVerdict(t *testing.T) {
	outage := []verify.Result{allowed, undecided, undecided, undecided, undecided, undecided, undecided, undecided}
	states, _ := follow(outage...)
	last := states[len(states)-1]
	require.Equal(t, "pass", states[5].result)
	require.Equal(t, state{result: "error", since: at(1), digest: "sha256:1", policy: "no policy", reason: "the registry does not answer", lastResult: "pass", lastSince: at(0)}, last)
	states, revoked := follow(append(outage, allowed)...)
	require.Equal(t, at(0), states[len(states)-1].since, "the verdict never changed")
	require.Zero(t, revoked)
	_, revoked = follow(append(outage, denied)...)
	require.Equal(t, 1, revoked, "what was allowed before the outage is denied now")
}

func TestAnImageThatWasNeverDecidedIsAnErrorSoon(t *testing.T) {
	states, _ := follow(undecided, undecided)
	require.Empty(t, states[0].result, "it may only take a moment")
	require.Equal(t, "error", states[1].result)
	require.Empty(t, states[1].lastResult)
}

func TestAnExceptionIsNamedWithItsEnd(t *testing.T) {
	s, _ := state{}.next(excepted, began)
	require.Equal(t, "warn", s.result)
	require.Equal(t, "ClusterException hotfix", s.exception)
	require.Equal(t, at(60), s.exceptionEnds)
	s, revoked := s.next(denied, at(61))
	require.True(t, revoked, "its end denies what it allowed")
	require.Empty(t, s.exception)
}

func TestTextsOfStrangersAreOneShortLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":             {"an image", "an image"},
		"an escape":         {"a\x1b[31mb", "a [31mb"},
		"several lines":     {"a\r\nb", "a  b"},
		"reordered":         {"a\u202eb", "a b"},
		"not UTF-8":         {"a\xffb", "a b"},
		"long":              {strings.Repeat("x", 50), strings.Repeat("x", 17) + "…"},
		"cut in a letter":   {strings.Repeat("ä", 50), strings.Repeat("ä", 8) + "…"},
		"as long as it may": {strings.Repeat("x", 20), strings.Repeat("x", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, policy.Shown(c.text, 20))
		})
	}
	require.True(t, parseStamp("yesterday").IsZero())
	require.Equal(t, began, parseStamp(stamp(began)))
	require.Empty(t, stamp(time.Time{}))
}
