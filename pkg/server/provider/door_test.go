package provider

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// tarpit holds every image of its repository "stuck" until it is released, whatever
// deadline there is.
type tarpit struct{ release chan struct{} }

func (p tarpit) decide(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
	if ref.Repository == "stuck" {
		<-p.release
	}
	return verdict(policy.Allowed, ns, ref)
}

// flood asks until an answer says that the account has too many images in flight, and
// returns after how many requests. Every request asks for the same image.
func flood(t *testing.T, h *handler, keys ...string) (requests int) {
	t.Helper()
	for {
		response, status := post(t, h, "/v1/verify", requestBody(t, keys...))
		require.NotEmpty(t, response.Response.SystemError)
		if status == http.StatusServiceUnavailable {
			require.Contains(t, response.Response.SystemError, "overloaded: namespace team-b has too many images in flight")
			return requests
		}
		requests++
	}
}

func TestAFloodForOneImageLeavesRoomForOtherAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tarpit{make(chan struct{})}
		h := testHandler(deciderFunc(p.decide), pinning, func(o *Options) { o.MaxKeys, o.VerifyTimeout = 64, minTimeout })
		requests := flood(t, h, "[team-b]r.example.com/stuck")
		require.GreaterOrEqual(t, requests, 32, "work that ignores its deadline keeps its place")
		require.Less(t, requests, 64, "and not much more than its share is let in")
		for range 20 {
			response, status := post(t, h, "/v1/verify", requestBody(t, "[team-a]r.example.com/a", "[team-a]r.example.com/b"))
			require.Equal(t, http.StatusOK, status, response.Response.SystemError)
			require.Len(t, response.Response.Items, 2)
		}
		close(p.release)
		require.Eventually(t, func() bool {
			response, _ := post(t, h, "/v1/verify", requestBody(t, "[team-b]r.example.com/a"))
			return len(response.Response.Items) == 1
		}, 20*time.Second, time.Millisecond, "places are given back")
	})
}

// oneTeam is a Decider for which all namespaces of team-b share an account.
type oneTeam struct{ Decider }

func (oneTeam) Account(namespace verify.Namespace) verify.Account {
	if strings.HasPrefix(string(namespace), "team-b") {
		return verify.TenantAccount("b")
	}
	return namespace.Account()
}

func TestFiftyNamespacesOfATenantHaveOneShareOfTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tarpit{make(chan struct{})}
		defer close(p.release)
		h := testHandler(oneTeam{deciderFunc(p.decide)}, pinning, func(o *Options) { o.MaxKeys, o.VerifyTimeout = 64, minTimeout })
		taken := 0
		for i := range 50 {
			if _, status := post(t, h, "/v1/verify", requestBody(t, fmt.Sprintf("[team-b-%d]r.example.com/stuck", i))); status == http.StatusOK {
				taken++
			}
		}
		require.Positive(t, taken)
		require.LessOrEqual(t, taken, 32, "as many as one namespace has")
		require.Len(t, ask(t, h, "/v1/verify", "[team-a]r.example.com/a").Items, 1)
	})
}

func TestKnownVerdictsTakePlacesToo(t *testing.T) {
	release := make(chan struct{})
	h := testHandler(knowing{byRepository, func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
		<-release
		return verdict(policy.Allowed, ns, ref), true
	}}, pinning, func(o *Options) { o.MaxKeys = 16 })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { ask(t, h, "/v1/verify", "[team-b]r.example.com/a") })
	}
	full := func() bool {
		taken := h.door.Take("namespace/team-b", 1, 0)
		if taken {
			h.door.Return("namespace/team-b", 1)
		}
		return !taken
	}
	require.Eventually(t, full, time.Minute, time.Millisecond)
	_, status := post(t, h, "/v1/verify", requestBody(t, "[team-b]r.example.com/a"))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.True(t, h.door.Take("namespace/team-a", 1, 0), "another account finds room")
	close(release)
	all.Wait()
}

// A flood of answers that are known takes processor time: recalling and encoding them
// must not wait in front of another account.
func TestKnownVerdictsAreAnsweredInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHandler(knowing{byRepository, func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
			return verdict(policy.Allowed, ns, ref), true
		}}, pinning, func(o *Options) { o.VerifyTimeout = minTimeout })
		var turns []*fair.Turn[verify.Account]
		for turn := h.turns.Try("namespace/team-b"); turn != nil; turn = h.turns.Try("namespace/team-b") {
			turns = append(turns, turn)
		}
		require.NotEmpty(t, turns)
		response, status := post(t, h, "/v1/verify", requestBody(t, "[team-b]r.example.com/a"))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, response.Response.SystemError, "no processor was free for namespace team-b in time")
		for _, turn := range turns {
			turn.Leave()
		}
		require.Len(t, ask(t, h, "/v1/verify", "[team-b]r.example.com/a").Items, 1)
		require.Len(t, ask(t, h, "/v1/verify", "not an image").Items, 1)
		for range turns {
			require.NotNil(t, h.turns.Try("namespace/team-a"), "every turn was left")
		}
	})
}

func TestReportsAboutOneImageAreBoundedAndShowWhatCountsFirst(t *testing.T) {
	var findings []policy.Finding
	for i := range 3 * maxReports {
		findings = append(findings, policy.Finding{Verifier: fmt.Sprint(i)})
	}
	findings = append(findings, judged.Proven("k1", policy.Finding{Verifier: "release"}))
	shown := reported(findings, maxReports)
	require.Len(t, shown, maxReports)
	require.Equal(t, "release", shown[0].Verifier)
	require.Equal(t, "0", shown[1].Verifier)
	few := reported(append(findings[:2:2], findings[len(findings)-1]), maxReports)
	proven := slices.Repeat([]policy.Finding{judged.Proven("k1", policy.Finding{Verifier: "release"})}, minReports)
	failed := policy.Finding{Verifier: "scan", Source: policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "scan"}}
	hidden := reported(slices.Concat(proven, findings[:minReports], []policy.Finding{failed}), minReports)
	require.Len(t, hidden, minReports)
	require.True(t, slices.ContainsFunc(hidden, func(f *policy.Finding) bool { return f.Verifier == "scan" }),
		"images beside it hide no failure from a template that denies because of it")
	for images, most := range map[int]int{0: 64, 1: 64, 4: 64, 5: 51, 16: 16, 32: 8, 1000: 8} {
		require.Equal(t, most, reportRoom(images), images)
	}
	require.Equal(t, []string{"0", "1", "release"}, []string{few[0].Verifier, few[1].Verifier, few[2].Verifier})
}

// Malformed keys need no work, but their text stays in memory as long as the request.
func TestMalformedKeysTakePlacesOfTheAccountThatTheyCameWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tarpit{make(chan struct{})}
		defer close(p.release)
		h := testHandler(deciderFunc(p.decide), pinning, func(o *Options) { o.MaxKeys, o.VerifyTimeout = 64, minTimeout })
		keys := []string{"[team-b]r.example.com/stuck"}
		for i := range 15 {
			keys = append(keys, fmt.Sprintf("not an image %d", i))
		}
		requests := flood(t, h, keys...)
		require.GreaterOrEqual(t, requests, 2)
		require.Less(t, requests, 8, "16 keys take 16 of 32 places")
	})
}

func TestARequestThatNeedsMoreThanThereIsTakesNothing(t *testing.T) {
	h := testHandler(byRepository, pinning, func(o *Options) { o.MaxKeys = 8 })
	_, status := post(t, h, "/v1/verify",
		requestBody(t, "[team-a]r.example.com/a", "[team-b]r.example.com/a1", "[team-b]r.example.com/a2", "[team-b]r.example.com/a3", "[team-b]r.example.com/a4",
			"[team-b]r.example.com/a5"))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Len(t, ask(t, h, "/v1/verify", "[team-a]r.example.com/a", "[team-a]r.example.com/a1", "[team-a]r.example.com/a2", "[team-a]r.example.com/a3").Items, 4,
		"every place was given back")
}

// Each request fits by itself, and is the only one of its account.
func TestLargeRequestsOfAFewAccountsLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tarpit{make(chan struct{})}
		defer close(p.release)
		h := testHandler(deciderFunc(p.decide), pinning, func(o *Options) { o.MaxKeys, o.VerifyTimeout = 64, minTimeout })
		for team := range 8 {
			keys := make([]string, 8)
			for i := range keys {
				keys[i] = fmt.Sprintf("[team-b%d]r.example.com/stuck:v%d", team, i)
			}
			post(t, h, "/v1/verify", requestBody(t, keys...))
		}
		require.Len(t, ask(t, h, "/v1/verify", "[team-a]r.example.com/a").Items, 1)
	})
}
