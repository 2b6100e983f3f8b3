package report

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

var began = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func verdict(v policy.Verdict) verify.Result { return verify.Result{Digest: "sha256:1", Verdict: v} }

var (
	allowed = verdict(judged.As(policy.Allowed, policy.Verdict{}))
	denied  = verdict(
		judged.As(policy.Denied,
			policy.Verdict{Policy: policy.ObjectRef{Kind: "ClusterVerifier", Name: "release"}, Reason: "the key is not trusted", Remediation: "sign it",
				Command: "cosign sign " + imageOne, Contact: "#team-a"}))
	excepted = verify.Result{Verdict: judged.As(policy.Allowed, policy.Verdict{Unverified: true}),
		Exception: policy.ObjectRef{Kind: "ClusterException", Name: "hotfix"}, ExceptionEnds: began.Add(time.Hour)}
	undecided = verdict(judged.As(policy.Undecided, policy.Verdict{Reason: "the registry does not answer"}))
)

func TestVerdictsBecomeTheWordsOfReports(t *testing.T) {
	for word, v := range map[string]policy.Verdict{
		"pass":  judged.As(policy.Allowed, policy.Verdict{}),
		"skip":  policy.Unverified(policy.ObjectRef{}, ""),
		"error": policy.NotDecided(policy.ObjectRef{}, ""),
		"fail":  {},
	} {
		require.Equal(t, word, resultOf(verdict(v)))
	}
	require.Equal(t, "warn", resultOf(verdict(judged.As(policy.Allowed, policy.Verdict{Warning: "unsigned", Unverified: true}))))
	require.Equal(t, "warn", resultOf(excepted))
}

// follow returns the states after results, a minute apart.
func follow(results ...verify.Result) (states []state, revoked int) {
	var s state
	for i, r := range results {
		var gone bool
		if s, gone = s.next(findingOf(r, began), began.Add(time.Duration(i)*time.Minute)); gone {
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
	require.Equal(t, state{result: "error", since: at(1), digest: "sha256:1", policy: "no policy", reason: "the registry does not answer", lastResult: "pass",
		lastSince: at(0)}, last)
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
	s, _ := state{}.next(findingOf(excepted, began), began)
	require.Equal(t, "warn", s.result)
	require.Equal(t, "ClusterException hotfix", s.exception)
	require.Equal(t, at(60), s.exceptionEnds)
	s, revoked := s.next(findingOf(denied, began), at(61))
	require.True(t, revoked, "its end denies what it allowed")
	require.Empty(t, s.exception)
}

func TestAResultNamesWhoSigned(t *testing.T) {
	proven := func(signer string) policy.Finding { return policy.NewProof(signer, "signed", nil).Finding() }
	refused := policy.Finding{Message: "the key is not trusted"}
	many := []policy.Finding{}
	for i := range 9 {
		many = append(many, proven(fmt.Sprintf("https://issuer.example.com release-%d", i)))
	}
	for name, c := range map[string]struct {
		findings []policy.Finding
		want     string
	}{
		"nobody":             {nil, ""},
		"nothing is proven":  {[]policy.Finding{refused, {Unknown: true}}, ""},
		"one":                {[]policy.Finding{refused, proven("sha256:a")}, "sha256:a"},
		"one, several times": {[]policy.Finding{proven("sha256:a"), proven("sha256:a")}, "sha256:a"},
		"several":            {[]policy.Finding{proven("sha256:b"), proven("sha256:a")}, "sha256:a; sha256:b"},
		"an identity":        {[]policy.Finding{proven("https://issuer.example.com a@example.com")}, "https://issuer.example.com a@example.com"},
		"text of a stranger": {[]policy.Finding{proven("a\u202e\x1bb")}, "a  b"},
		"more than are named": {many, "https://issuer.example.com release-0; https://issuer.example.com release-1; https://issuer.example.com release-2; " +
			"https://issuer.example.com release-3; https://issuer.example.com release-4; and 4 more"},
	} {
		t.Run(name, func(t *testing.T) {
			result := allowed
			result.Findings = c.findings
			s, _ := state{}.next(findingOf(result, began), began)
			require.Equal(t, c.want, s.signers)
		})
	}
	long := allowed
	long.Findings = []policy.Finding{proven(strings.Repeat("x", 5000))}
	s, _ := state{}.next(findingOf(long, began), began)
	require.Len(t, s.signers, maxSignersBytes)
}

// by is a result that is allowed by evidence of a signer.
func by(signer string) verify.Result {
	result := allowed
	result.Findings = []policy.Finding{policy.NewProof(signer, "signed", nil).Finding()}
	return result
}

func TestASignerIsReportedAndKeptByTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		reported := func() string {
			server.mu.Lock()
			defer server.mu.Unlock()
			return server.reports["team-a/landwaiter-running"].Results[0].Properties["signers"]
		}
		r.Verified("team-a", imageOne, by("https://issuer.example.com a@example.com"))
		pass(10 * time.Second)
		require.Equal(t, "https://issuer.example.com a@example.com", reported())
		r.Verified("team-a", imageOne, by("sha256:b"))
		pass(10 * time.Second)
		require.Equal(t, "sha256:b", reported(), "nothing else changed")
	})
	s := newSpace()
	s.renew([]workload.Running{runs(web, "main", imageOne)}, map[string]finding{imageOne: findingOf(by("sha256:b"), began)}, began)
	next := newSpace()
	next.load(stored(s.all())[0], began, runningBytes)
	require.Equal(t, s.images, next.images)
	require.Equal(t, "sha256:b", next.images[imageOne].signers)
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

func TestAFailureSaysWhenItWasLookedAtAndOnlyNowAndThenAnew(t *testing.T) {
	looking := func(r verify.Result, minute int) finding {
		r.Answered = at(minute)
		return findingOf(r, at(minute))
	}
	k := newKnown()
	var s state
	for _, step := range []struct{ minute, looked, want int }{{0, 0, 0}, {9, 9, 0}, {10, 10, 10}, {25, -1, 10}, {30, 30, 30}} {
		f := findingOf(denied, at(step.minute)) // from a cache
		if step.looked >= 0 {
			f = looking(denied, step.looked)
		}
		k.set("team-a", "a", imageOne, f)
		s, _ = s.next(k.get("team-a").images[imageOne], at(step.minute))
		require.Equal(t, at(step.want), s.looked, "minute %d", step.minute)
	}
	row := workload.Running{Image: imageOne}
	failing := &space{images: map[string]state{imageOne: s}}
	require.Equal(t, stamp(at(30)), failing.runningResult("team-a", row).Properties[v1beta1.PropertyLooked])
	s, _ = s.next(looking(allowed, 31), at(31))
	require.NotContains(t, (&space{images: map[string]state{imageOne: s}}).runningResult("team-a", row).Properties, v1beta1.PropertyLooked)
	s, _ = s.next(looking(denied, 32), at(32))
	require.Equal(t, at(32), s.looked, "another verdict is of another look")
}
