//go:build !e2e && !nightly

package evidence

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func (e *environment) outcome(t *testing.T, ns verify.Namespace, img fixture.Image) policy.Verdict {
	t.Helper()
	return e.Verify(t.Context(), ns, digestOf(img)).Verdict
}

func requireOutcome(t *testing.T, want policy.Outcome, got policy.Verdict) {
	t.Helper()
	require.Equal(t, want.String(), got.Outcome().String(), got.Reason)
}

func TestTheSameImageHasOppositeVerdictsInTwoNamespacesUnderLoad(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "shared/app", "a")
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.trusting(t, "team-b", "b"),
		e.policy(t, "team-a", "p", releaseNeeded), e.policy(t, "team-b", "p", releaseNeeded)))
	var wrong atomic.Pointer[string]
	var callers sync.WaitGroup
	for range 8 {
		for ns, want := range map[verify.Namespace]policy.Outcome{"team-a": policy.Allowed, "team-b": policy.Denied} {
			callers.Go(func() {
				for range 200 {
					if verdict := e.Verify(context.Background(), ns, digestOf(img)).Verdict; verdict.Outcome() != want {
						said := fmt.Sprintf("%s: %s: %s", ns, verdict.Outcome(), verdict.Reason)
						wrong.Store(&said)
					}
				}
			})
		}
	}
	callers.Wait()
	if said := wrong.Load(); said != nil {
		t.Fatal(*said)
	}
	require.True(t, e.Verify(t.Context(), "team-a", digestOf(img)).Cached)
	require.True(t, e.Verify(t.Context(), "team-b", digestOf(img)).Cached)
}

func TestEditsChangeVerdictsAtOnceAndEditsBackAreWarm(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "team-a/app", "a")
	trustA := []func(*resource.Objects){e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)}
	trustB := []func(*resource.Objects){e.trusting(t, "team-a", "b"), e.policy(t, "team-a", "p", releaseNeeded)}
	for round := range 4 {
		require.Empty(t, e.apply(t, trustA...))
		result := e.Verify(t.Context(), "team-a", digestOf(img))
		requireOutcome(t, policy.Allowed, result.Verdict)
		require.Equal(t, round > 0, result.Cached)
		require.Empty(t, e.apply(t, trustB...))
		requireOutcome(t, policy.Denied, e.outcome(t, "team-a", img))
	}
}

func TestAMandatoryPolicyHoldsAgainstALaxNamespace(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	byCorp, byBoth, unsigned := e.signed(t, "x/corp", "corp"), e.signed(t, "x/both", "corp", "a"), e.signed(t, "x/none")
	mandatory := e.policy(t, "", "mandatory", "scope: Mandatory\n"+releaseNeeded)
	require.Empty(t, e.apply(t, e.trusting(t, "", "corp"), mandatory, e.policy(t, "lax", "p", "defaultAction: Allow"),
		e.trusting(t, "strict", "a"), e.policy(t, "strict", "p", releaseNeeded),
		e.trusting(t, "impostor", "a"), e.policy(t, "impostor", "p", releaseNeeded)))
	requireOutcome(t, policy.Denied, e.outcome(t, "lax", unsigned))
	requireOutcome(t, policy.Allowed, e.outcome(t, "lax", byCorp))
	requireOutcome(t, policy.Denied, e.outcome(t, "strict", byCorp))
	requireOutcome(t, policy.Allowed, e.outcome(t, "strict", byBoth))
	onlyA := e.signed(t, "x/only-a", "a")
	requireOutcome(t, policy.Denied, e.outcome(t, "impostor", onlyA))
	require.Contains(t, e.outcome(t, "impostor", onlyA).Reason, "ClusterVerificationPolicy mandatory")
}

func TestABrokenResourceDeniesInItsNamespaceAndNowhereElse(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "shared/app", "corp")
	broken := func(o *resource.Objects) {
		v := &v1beta1.Verifier{Spec: byKey("gone")}
		v.Name, v.Namespace = "release", "team-a"
		o.Resources = append(o.Resources, v)
	}
	problems := e.apply(t, e.trusting(t, "", "corp"), e.policy(t, "", "p", releaseNeeded), broken)
	require.Len(t, problems, 1)
	verdict := e.outcome(t, "team-a", img)
	requireOutcome(t, policy.Denied, verdict)
	require.Contains(t, verdict.Reason, "Verifier team-a/release")
	require.Contains(t, verdict.Reason, "TrustStore team-a/gone")
	for _, ns := range []verify.Namespace{"team-b", verify.Cluster} {
		requireOutcome(t, policy.Allowed, e.outcome(t, ns, img))
	}
	require.Empty(t, e.apply(t, e.trusting(t, "", "corp"), e.policy(t, "", "p", releaseNeeded)))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
}

func TestWithoutPolicyEveryMatchingVerifierMustPass(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	signed, unsigned := e.signed(t, "x/app", "a"), e.signed(t, "x/none")
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a")))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", signed))
	requireOutcome(t, policy.Denied, e.outcome(t, "team-a", unsigned))
	require.Contains(t, e.outcome(t, "team-a", unsigned).Reason, "the built-in rule (there is no policy) requires")
	requireOutcome(t, policy.Denied, e.outcome(t, "team-b", signed))
	require.Contains(t, e.outcome(t, "team-b", signed).Reason, "no Verifier applies")
}

func TestReplayedAndForeignSignaturesDenyWithTheirOwnReasons(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	good, victim := e.signed(t, "x/app", "a"), e.signed(t, "x/victim")
	_, err := e.registry.CopyCosign(t.Context(), good, victim)
	require.NoError(t, err)
	foreign := e.signed(t, "x/foreign", "attacker")
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
	replayed, wrongKey := e.outcome(t, "team-a", victim), e.outcome(t, "team-a", foreign)
	requireOutcome(t, policy.Denied, replayed)
	requireOutcome(t, policy.Denied, wrongKey)
	require.NotEqual(t, strings.SplitN(replayed.Reason, ":", 2)[1], strings.SplitN(wrongKey.Reason, ":", 2)[1])
}

// Every format, through every way that a registry lists it.
func TestEveryFormatIsFoundInEveryRegistry(t *testing.T) {
	for name, options := range map[string]fixture.RegistryOptions{
		"referrers API": {}, "fallback tag": {NoReferrers: true}, "TLS": {TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, options)
			require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
			key := e.signer(t, "a")
			tagged, referring, bundle := e.signed(t, "x/tag", "a"), e.signed(t, "x/referrer"), e.signed(t, "x/bundle")
			_, err := e.registry.SignCosignReferrer(t.Context(), referring, key, fixture.CosignOptions{})
			require.NoError(t, err)
			_, err = e.registry.SignCosignBundle(t.Context(), bundle, key, fixture.CosignOptions{})
			require.NoError(t, err)
			for _, img := range []fixture.Image{tagged, referring, bundle} {
				requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
				result := e.Verify(t.Context(), "team-a", img.Reference.WithTag("v1"))
				requireOutcome(t, policy.Allowed, result.Verdict)
				require.Equal(t, img.Descriptor.Digest, result.Digest)
			}
		})
	}
}

// The first image of a host is asked for in both ways of listing referrers; then it
// is known which one the host has.
func TestColdVerificationAsksNoMoreThanItMust(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
	first, img := e.signed(t, "x/app", "a"), e.signed(t, "x/app", "a")
	e.registry.Reset()
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", first))
	require.LessOrEqual(t, e.registry.Count(), 4, e.registry.Requests())
	e.registry.Reset()
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
	// A request for the first image may still be on its way after its verdict.
	about := slices.DeleteFunc(e.registry.Requests(), func(r fixture.Request) bool { return strings.Contains(r.Path, first.Descriptor.Digest.Encoded()) })
	require.Len(t, about, 3, "the subject, the .sig tag and the referrers; the payload is rebuilt")
}

func TestARegistryThatFailsLeavesItUndecided(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "x/app", "a")
	require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
	e.registry.SetIntercept(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusInternalServerError)
		return true
	})
	requireOutcome(t, policy.Undecided, e.outcome(t, "team-a", img))
	e.registry.SetIntercept(nil)
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
}
