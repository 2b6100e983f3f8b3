package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

var anyA = verify.Requirement{AnyOf: []string{"a"}, AtLeast: 1}

func TestVerdictsFollowTheEvidence(t *testing.T) {
	good := "k1:" + appDigest.String()
	cases := map[string]struct {
		arrange func(t *testing.T, r *registry)
		demand  verify.Requirement
		outcome policy.Outcome
		reason  string
	}{
		"signed under the tag":       {func(t *testing.T, r *registry) { r.manifest(t, true, good) }, anyA, policy.Allowed, "Verifier team-a/a"},
		"signed by a referrer":       {func(t *testing.T, r *registry) { r.manifest(t, false, good) }, anyA, policy.Allowed, "Verifier team-a/a"},
		"bad ones before a good one": {func(t *testing.T, r *registry) { r.manifest(t, true, "x", "y", good) }, anyA, policy.Allowed, ""},
		"unsigned":                   {func(*testing.T, *registry) {}, anyA, policy.Denied, "no signature was found"},
		"signed by another": {func(t *testing.T, r *registry) { r.manifest(t, true, "k9:"+appDigest.String()) }, anyA, policy.Denied,
			"no trusted signature"},
		"a signature of another one": {func(t *testing.T, r *registry) { r.manifest(t, true, "k1:"+digest.FromString("z").String()) }, anyA, policy.Denied,
			"no trusted signature"},
		"a manifest without layers": {func(t *testing.T, r *registry) { r.manifest(t, true) }, anyA, policy.Denied, "has no layers"},
		"two signers where two count": {func(t *testing.T, r *registry) { r.manifest(t, true, good, "k2:"+appDigest.String()) },
			verify.Requirement{AnyOf: []string{"a"}, AtLeast: 2}, policy.Allowed, ""},
		"one signer where two count": {func(t *testing.T, r *registry) { r.manifest(t, true, good, good) }, verify.Requirement{AnyOf: []string{"a"}, AtLeast: 2},
			policy.Denied, "2 different signers"},
		"garbage for a manifest": {func(_ *testing.T, r *registry) {
			r.listed = append(r.listed, r.put(ocispec.MediaTypeImageManifest, []byte("{{{")))
		}, anyA, policy.Denied, "not an OCI manifest"},
		"65 signatures, the last one good": {func(t *testing.T, r *registry) {
			r.manifest(t, true, append(numbered(64), good)...)
		}, anyA, policy.Denied, "only the first 32 are tried"},
		"65 signatures over referrers, the last one good": {func(t *testing.T, r *registry) {
			for _, text := range append(numbered(64), good) {
				r.manifest(t, false, text)
			}
		}, anyA, policy.Denied, "more than 64 referrers"},
		"32 under the tag leave none for referrers": {func(t *testing.T, r *registry) {
			r.manifest(t, true, numbered(32)...)
			r.manifest(t, false, good)
		}, anyA, policy.Denied, "only the first 32 are tried"},
		"the 32nd still counts": {func(t *testing.T, r *registry) { r.manifest(t, true, append(numbered(31), good)...) }, anyA, policy.Allowed, ""},
		"listing failed, nothing found": {func(_ *testing.T, r *registry) {
			r.list = func(context.Context) error { return errors.New("registry answered 503") }
		}, anyA, policy.Undecided, "503"},
		"listing failed in part, good one found": {func(t *testing.T, r *registry) {
			r.manifest(t, true, good)
			r.list = func(context.Context) error { return errors.New("registry answered 503") }
		}, anyA, policy.Allowed, ""},
		"listing refused for good": {func(_ *testing.T, r *registry) {
			r.list = func(context.Context) error {
				return verify.Permanent(policy.ReasonAccessDenied, errors.New("access denied"))
			}
		}, anyA, policy.Denied, "access denied"},
		"a blob that cannot be read now": {func(t *testing.T, r *registry) {
			r.manifest(t, true, good)
			r.fetch = func(context.Context, ocispec.Descriptor) error { return errors.New("timeout") }
		}, anyA, policy.Undecided, "timeout"},
		"a manifest that cannot be read now": {func(t *testing.T, r *registry) {
			r.manifest(t, false, good)
			r.fetch = func(context.Context, ocispec.Descriptor) error { return errors.New("timeout") }
		}, anyA, policy.Undecided, "timeout"},
		"the image is not there": {func(_ *testing.T, r *registry) {
			r.resolve = func(context.Context, image.Reference) error {
				return verify.Permanent(policy.ReasonNotFound, errors.New("not there"))
			}
		}, anyA, policy.Denied, "not there"},
		"the registry does not answer": {func(_ *testing.T, r *registry) {
			r.resolve = func(context.Context, image.Reference) error { return errors.New("connection refused") }
		}, anyA, policy.Undecided, "connection refused"},
		"the registry answers for another digest": {func(t *testing.T, r *registry) {
			r.manifest(t, true, good)
			r.resolved = func(image.Reference) ocispec.Descriptor {
				return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("other"), Size: 2}
			}
		}, anyA, policy.Denied, ""}, // for a digest it is a lie, for a tag another image
		"the registry panics": {func(_ *testing.T, r *registry) {
			r.list = func(context.Context) error { panic("boom") }
		}, anyA, policy.Undecided, "internal error"},
		"fetching panics": {func(t *testing.T, r *registry) {
			r.manifest(t, false, good)
			r.fetch = func(context.Context, ocispec.Descriptor) error { panic("boom") }
		}, anyA, policy.Undecided, "internal error"},
	}
	for name, c := range cases {
		for _, spelling := range []string{"r.example.com/app@" + appDigest.String(), "r.example.com/app:v1"} {
			t.Run(name+", "+spelling[:19], func(t *testing.T) {
				r := newRegistry()
				r.tags["v1"] = appDigest
				c.arrange(t, r)
				kept := newCache()
				e, configured := engine(kept, verify.Options{}), config(tier(t, r, c.demand, verifier(t, "a", "k1", "k2")))
				before, early := e.Recall(configured, ref(t, spelling))
				require.False(t, early && before.Verdict.Outcome() == policy.Allowed, "nothing was proven yet")
				result := e.Verify(t.Context(), configured, ref(t, spelling))
				recalled, ok := e.Recall(configured, ref(t, spelling))
				require.Equal(t, early || kept.verdicts() > 0, ok, "what is kept is recalled, and nothing else")
				if ok {
					require.Equal(t, result.Verdict, recalled.Verdict)
					require.Equal(t, result.Findings, recalled.Findings)
					require.Equal(t, result.Reference, recalled.Reference)
				}
				require.Equal(t, c.outcome.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
				require.Contains(t, result.Verdict.Reason, c.reason)
				require.NotEmpty(t, result.Verdict.Reason)
				if c.outcome == policy.Undecided {
					require.Zero(t, kept.verdicts(), "what is not known is not kept")
				}
			})
		}
	}
}

// numbered returns n different texts that no verifier trusts.
func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("bad %d", i)
	}
	return texts
}

func TestConfigurationsWithoutProofDeny(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	broken := &verify.Verifier{Source: policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "a"},
		Broken: errors.New("Verifier team-a/a: Secret team-a/pub is not there")}
	elsewhere := verifier(t, "a", "k1")
	pattern, err := image.ParsePattern("other.example.com/**")
	require.NoError(t, err)
	elsewhere.Images = []image.Pattern{pattern}
	lax := tier(t, r, anyA, verifier(t, "a", "k1"))
	lax.Judge.Rules()[0].Images = elsewhere.Images
	lax.Judge = verify.ByRules(lax.Judge.Rules(), verify.DefaultAllow)
	brokenTier := tier(t, r, anyA, verifier(t, "a", "k1"))
	brokenTier.Judge = brokenTier.Judge.Refusing(errors.New("VerificationPolicy team-a/strict cannot be used"))
	cases := map[string]struct {
		config *verify.Config
		reason string
	}{
		"the zero configuration": {&verify.Config{}, "no policy is loaded"},
		"a zero tier":            {config(verify.Tier{}), "defaultAction is Deny"},
		"no rule matches": {config(verify.Tier{Registry: r, Source: policy.ObjectRef{Kind: "VerificationPolicy", Name: "x"}}),
			"no rule of"},
		"a rule that requires nothing": {config(tier(t, r, verify.Requirement{}, verifier(t, "a", "k1"))), "it requires a Verifier of type"},
		"atLeast zero":                 {config(tier(t, r, verify.Requirement{AnyOf: []string{"a"}}, verifier(t, "a", "k1"))), "must be 1 or more"},
		"a verifier that does not exist": {config(tier(t, r, anyA, verifier(t, "b", "k1"))),
			"team-a has no Verifier a, and because it has others, no ClusterVerifier applies there"},
		"a verifier for other images": {config(tier(t, r, anyA, elsewhere)), "is not for r.example.com/app"},
		"a broken verifier":           {config(tier(t, r, anyA, broken)), "Secret team-a/pub is not there"},
		"a broken verifier of unknown type": {config(tier(t, r, verify.Requirement{Types: []string{"Cosign"}, AtLeast: 1}, broken)),
			"Secret team-a/pub is not there"},
		"a broken policy": {config(brokenTier), "cannot be used"},
		"a broken verifier " +
			"among all of": {config(tier(t, r, verify.Requirement{AllOf: []string{"a", "b"}, AtLeast: 1}, broken, verifier(t, "b", "k1"))), "Secret team-a/pub"},
		"no policy and no verifier": {config(verify.Tier{Registry: r, Judge: verify.ByVerifiers()}), "no Verifier applies to r.example.com/app"},
		"no policy and no matching verifier": {config(verify.Tier{Registry: r, Judge: verify.ByVerifiers(), Verifiers: []*verify.Verifier{elsewhere}}),
			"no Verifier applies to r.example.com/app"},
		"no policy and a " +
			"broken verifier": {config(verify.Tier{Registry: r, Judge: verify.ByVerifiers(), Verifiers: []*verify.Verifier{broken, verifier(t, "b", "k1")}}),
			"Secret team-a/pub"},
		"no verifier of the type": {config(tier(t, r, verify.Requirement{Types: []string{"Notation"}, AtLeast: 1}, verifier(t, "a", "k1"))),
			"it requires a Verifier of type Notation, and none applies to"},
		"a lax tier above a mandatory policy that fails": {config(lax, tier(t, r, anyA, verifier(t, "a", "k9"))), "no trusted signature"},
		"a lax tier above a broken mandatory policy":     {config(lax, brokenTier), "cannot be used"},
		"no registry": {config(tier(t, nil, anyA, verifier(t, "a", "k1"))), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := engine(newCache(), verify.Options{}).Verify(t.Context(), c.config, ref(t, "r.example.com/app@"+appDigest.String()))
			require.NotEqual(t, policy.Allowed, result.Verdict.Outcome())
			require.Contains(t, result.Verdict.Reason, c.reason)
			if name != "no registry" {
				require.Equal(t, policy.Denied, result.Verdict.Outcome())
			}
		})
	}
}

// The namespace of the pod may have Verifiers, so who asked without one is told to name it.
func TestADenialWithoutANamespaceSaysToNameIt(t *testing.T) {
	none := config(verify.Tier{Registry: newRegistry(), Judge: verify.ByVerifiers()})
	of := func() policy.Verdict {
		return engine(newCache(), verify.Options{}).Verify(t.Context(), none, ref(t, "r.example.com/app@"+appDigest.String())).Verdict
	}
	require.Equal(t, "create a Verifier in the namespace whose images match it, or ask a cluster admin for one", of().Remediation)
	none.Namespace = verify.Cluster
	require.Equal(t, policy.Denied, of().Outcome())
	require.Equal(t, "no namespace was given, so only cluster resources apply: there is no ClusterVerificationPolicy, and no ClusterVerifier applies to "+
		"r.example.com/app", of().Reason)
	require.Equal(t, "give the pod's namespace (for commands: add --namespace), or ask a cluster admin for a ClusterVerifier", of().Remediation)
}

// Resources from files have no conditions.
func TestTheFixOfABrokenPolicyHoldsForFilesToo(t *testing.T) {
	broken := tier(t, newRegistry(), anyA)
	broken.Judge = broken.Judge.Refusing(errors.New("VerificationPolicy team-a/strict cannot be used"))
	verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(broken), ref(t, "r.example.com/app@"+appDigest.String())).Verdict
	require.Equal(t, "correct VerificationPolicy team-a/strict; its condition Ready, or landwaiter check for files, says what is wrong", verdict.Remediation)
}

func TestConfigurationsThatProvePass(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	lax := tier(t, r, anyA)
	lax.Judge = verify.ByRules(nil, verify.DefaultAllow)
	cases := map[string]struct {
		config *verify.Config
		calls  int
	}{
		"by name": {config(tier(t, r, anyA, verifier(t, "a", "k1"))), 1},
		"by type": {
			config(tier(t, r, verify.Requirement{Types: []string{"Cosign"}, AtLeast: 1}, verifier(t, "a", "k9"), verifier(t, "b", "k1"))), 1},
		"no policy, all " +
			"matching pass": {
			config(verify.Tier{Registry: r, Judge: verify.ByVerifiers(), Verifiers: []*verify.Verifier{verifier(t, "a", "k1"), verifier(t, "b", "k1")}}), 1},
		"default Allow asks no registry":             {config(lax), 0},
		"default Allow above a met mandatory policy": {config(lax, tier(t, r, anyA, verifier(t, "a", "k1"))), 1},
		"two tiers on one registry look once": {config(tier(t, r, anyA, verifier(t, "a", "k1")),
			tier(t, r, verify.Requirement{AnyOf: []string{"f"}, AtLeast: 1}, verifier(t, "f", "k1"))), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := r.called("list")
			result := engine(newCache(), verify.Options{}).Verify(t.Context(), c.config, ref(t, "r.example.com/app@"+appDigest.String()))
			require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
			require.Equal(t, c.calls, r.called("list")-before)
		})
	}
}

func TestNoPolicyNeedsEveryMatchingVerifier(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	both := config(verify.Tier{Registry: r, Judge: verify.ByVerifiers(), Verifiers: []*verify.Verifier{verifier(t, "a", "k1"), verifier(t, "b", "k2")}})
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), both, ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.Contains(t, result.Verdict.Reason, "a valid signature for a and for b: there is one for a; for b, ")
}

func TestTheVerdictIsAboutOneDigestHoweverOftenTheTagMoves(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	var asked atomic.Int32
	r.resolved = func(ref image.Reference) ocispec.Descriptor {
		d := appDigest
		if ref.Digest != "" {
			d = ref.Digest
		} else if asked.Add(1)%2 == 0 {
			d = digest.FromString("evil")
		}
		return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: d, Size: 2}
	}
	for range 10 {
		result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app:v1"))
		if result.Verdict.Outcome() == policy.Allowed {
			require.Equal(t, appDigest, result.Digest, "only the verified digest is named")
		} else {
			require.Equal(t, digest.FromString("evil"), result.Digest)
		}
	}
	require.EqualValues(t, 10, asked.Load(), "a tag is resolved once a request")
}

func TestVerdictsAreKeptByEveryPartOfTheKey(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	kept := newCache()
	e := engine(kept, verify.Options{})
	image := ref(t, "r.example.com/app@"+appDigest.String())
	verified := func(change func(*verify.Config)) verify.Result {
		c := config(tier(t, r, anyA, verifier(t, "a", "k1")))
		change(c)
		return e.Verify(t.Context(), c, image)
	}
	require.False(t, verified(func(*verify.Config) {}).Cached)
	require.True(t, verified(func(*verify.Config) {}).Cached)
	require.False(t, verified(func(c *verify.Config) { c.Namespace = "team-b" }).Cached, "another tenant")
	require.False(t, verified(func(c *verify.Config) { c.UID = "2" }).Cached, "a namespace made again")
	require.False(t, verified(func(c *verify.Config) { c.Generation = "g2" }).Cached, "an edit")
	require.True(t, verified(func(*verify.Config) {}).Cached, "an edit back is warm")
	other := e.Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/other@"+appDigest.String()))
	require.False(t, other.Cached, "the same digest in another repository")
	for key, ttl := range kept.ttls {
		require.Equal(t, time.Hour, ttl, key)
	}
}

func TestDeniesAreKeptShort(t *testing.T) {
	kept := newCache()
	e := engine(kept, verify.Options{})
	result := e.Verify(t.Context(), config(tier(t, newRegistry(), anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.Len(t, kept.ttls, 1)
	for _, ttl := range kept.ttls {
		require.Equal(t, 10*time.Second, ttl)
	}
}

func TestConcurrentCallersShareTheWork(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	gate := make(chan struct{})
	r.list = func(context.Context) error { <-gate; return nil }
	e := engine(newCache(), verify.Options{})
	c := config(tier(t, r, anyA, verifier(t, "a", "k1")))
	image := ref(t, "r.example.com/app@"+appDigest.String())
	var callers sync.WaitGroup
	outcomes := make([]policy.Outcome, 20)
	for i := range outcomes {
		callers.Go(func() { outcomes[i] = e.Verify(t.Context(), c, image).Verdict.Outcome() })
	}
	require.Eventually(t, func() bool { return r.called("list") == 1 }, time.Minute, time.Millisecond)
	close(gate)
	callers.Wait()
	for _, outcome := range outcomes {
		require.Equal(t, policy.Allowed, outcome)
	}
	require.LessOrEqual(t, r.called("fetch"), 2)
}

func TestWorkOutlivesACallerThatLeaves(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	gate := make(chan struct{})
	r.list = func(ctx context.Context) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	kept := newCache()
	e := engine(kept, verify.Options{})
	c := config(tier(t, r, anyA, verifier(t, "a", "k1")))
	image := ref(t, "r.example.com/app@"+appDigest.String())
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan verify.Result)
	go func() { left <- e.Verify(ctx, c, image) }()
	require.Eventually(t, func() bool { return r.called("list") == 1 }, time.Minute, time.Millisecond)
	cancel()
	result := <-left
	require.Equal(t, policy.Undecided, result.Verdict.Outcome())
	require.Contains(t, result.Verdict.Reason, "try again")
	close(gate)
	require.Eventually(t, func() bool { return kept.verdicts() == 1 }, time.Minute, time.Millisecond)
	require.True(t, e.Verify(t.Context(), c, image).Cached, "the retry finds a warm cache")
}

func TestWorkIsBounded(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	t.Run("in time", func(t *testing.T) {
		r := newRegistry()
		r.list = hang
		result := engine(newCache(), verify.Options{WorkTimeout: 20 * time.Millisecond}).
			Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app@"+appDigest.String()))
		require.Equal(t, policy.Undecided, result.Verdict.Outcome())
	})
	t.Run("per namespace, leaving room for others", func(t *testing.T) {
		r := newRegistry()
		r.list = hang
		e := engine(newCache(), verify.Options{InFlightPerAccount: 1, InFlight: 2, WorkTimeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := config(tier(t, r, anyA, verifier(t, "a", "k1")))
		go e.Verify(ctx, c, ref(t, "r.example.com/one@"+appDigest.String()))
		require.Eventually(t, func() bool { return r.called("list") == 1 }, time.Minute, time.Millisecond)
		result := e.Verify(t.Context(), c, ref(t, "r.example.com/two@"+appDigest.String()))
		require.Equal(t, policy.Undecided, result.Verdict.Outcome())
		require.Contains(t, result.Verdict.Reason, "too many images")
		require.True(t, result.Overloaded)
		quiet := newRegistry()
		quiet.manifest(t, true, "k1:"+appDigest.String())
		other := config(tier(t, quiet, anyA, verifier(t, "a", "k1")))
		other.Namespace = "team-b"
		require.Equal(t, policy.Allowed, e.Verify(t.Context(), other, ref(t, "r.example.com/app@"+appDigest.String())).Verdict.Outcome())
	})
	t.Run("per account, whichever of its namespaces asks", func(t *testing.T) {
		r := newRegistry()
		r.list = hang
		e := engine(newCache(), verify.Options{InFlightPerAccount: 1, InFlight: 4, WorkTimeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		of := func(namespace verify.Namespace, account verify.Account) *verify.Config {
			c := config(tier(t, r, anyA, verifier(t, "a", "k1")))
			c.Namespace, c.Account = namespace, account
			return c
		}
		image := ref(t, "r.example.com/one@"+appDigest.String())
		go e.Verify(ctx, of("team-a", "shared"), image)
		require.Eventually(t, func() bool { return r.called("list") == 1 }, time.Minute, time.Millisecond)
		require.True(t, e.Verify(t.Context(), of("team-b", "shared"), image).Overloaded)
		go e.Verify(ctx, of("team-c", ""), image)
		require.Eventually(t, func() bool { return r.called("list") == 2 }, time.Minute, time.Millisecond, "another account has its own")
		other := ref(t, "r.example.com/two@"+appDigest.String())
		require.True(t, e.Verify(t.Context(), of("team-c", ""), other).Overloaded, "no account is no way around the limit")
		require.True(t, e.Verify(t.Context(), of("team-c", "namespace/team-c"), other).Overloaded, "it is the namespace's own")
	})
}

func TestEnoughProofEndsTheSearch(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	r.manifest(t, false, "slow")
	r.fetch = func(ctx context.Context, desc ocispec.Descriptor) error {
		if desc.Digest == r.listed[1].Digest {
			<-ctx.Done() // would hang for ever without early exit
			return ctx.Err()
		}
		return nil
	}
	result := engine(newCache(), verify.Options{WorkTimeout: time.Hour}).
		Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))), ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Allowed, result.Verdict.Outcome())
	require.Len(t, result.Findings, 1)
}

func TestAPanickingCheckerAdmitsNothing(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	v := verifier(t, "a", "k1")
	v.Checker.(*checker).before = func(string) { panic("boom") }
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, v)), ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Undecided, result.Verdict.Outcome())
	require.Contains(t, result.Verdict.Reason, "internal error")
}

func TestManyVerifiersFetchEachBlobOnce(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "x")
	r.manifest(t, false, "y")
	var verifiers []*verify.Verifier
	var names []string
	for i := range 8 {
		verifiers = append(verifiers, verifier(t, fmt.Sprintf("v%d", i), "k1"))
		names = append(names, fmt.Sprintf("v%d", i))
	}
	engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, verify.Requirement{AnyOf: names, AtLeast: 1}, verifiers...)),
		ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, 3, r.called("fetch"), "two payloads and one manifest")
}

func TestEvidenceIsBoundedInBytes(t *testing.T) {
	r := newRegistry()
	for i := range 40 {
		content := fmt.Sprintf(`{"schemaVersion":2,"n":%d}`, i)
		desc := r.put(ocispec.MediaTypeImageManifest, []byte(content))
		desc.Size = verify.MaxManifestBytes
		r.listed = append(r.listed, desc)
	}
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, verifier(t, "a", "k1"))),
		ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Denied, result.Verdict.Outcome())
	require.Contains(t, result.Verdict.Reason, "more evidence than is read, at most 16777216 bytes for one image")
	require.Equal(t, verify.DefaultEvidenceBytes/9/verify.MaxManifestBytes, r.called("fetch"))
}

func TestResolve(t *testing.T) {
	r := newRegistry()
	r.tags["v1"] = appDigest
	c := config(tier(t, r, anyA))
	e := engine(newCache(), verify.Options{})
	pinned, err := e.Resolve(t.Context(), c, ref(t, "r.example.com/app:v1"))
	require.NoError(t, err)
	require.Equal(t, "r.example.com/app:v1@"+appDigest.String(), pinned.String())
	_, err = e.Resolve(t.Context(), c, ref(t, "r.example.com/app:v2"))
	require.True(t, verify.IsPermanent(err))
	before := r.called("resolve")
	_, err = e.Resolve(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
	require.NoError(t, err)
	require.Equal(t, before, r.called("resolve"), "a digest needs no network call")
	_, err = e.Resolve(t.Context(), &verify.Config{}, ref(t, "r.example.com/app:v1"))
	require.Error(t, err)
	require.False(t, verify.IsPermanent(err))
}

func TestKeyStringFencesTenantsIn(t *testing.T) {
	base := verify.Key{Namespace: "team-a", Kind: verify.KindVerdict, UID: "u", Generation: "g", Image: "i"}
	require.True(t, strings.HasPrefix(base.String(), "landwaiter:team-a:verdict:"))
	cluster := base
	cluster.Namespace = verify.Cluster
	require.True(t, strings.HasPrefix(cluster.String(), "landwaiter:-:verdict:"))
	seen := map[string]verify.Key{}
	for _, key := range []verify.Key{base, cluster,
		{Namespace: "team-a", Kind: verify.KindVerdict, UID: "ug", Generation: "", Image: "i"},
		{Namespace: "team-a", Kind: verify.KindVerdict, UID: "", Generation: "ug", Image: "i"},
		{Namespace: "team-a", Kind: verify.KindTag, UID: "u", Generation: "g", Image: "i"},
		{Namespace: "team-a", Kind: verify.KindVerdict, UID: "u", Generation: "g", Image: "ii"},
	} {
		require.NotContains(t, seen, key.String())
		seen[key.String()] = key
	}
}

func TestParseNamespace(t *testing.T) {
	for _, s := range []string{"team-a", "a", "0a", strings.Repeat("a", 63)} {
		ns, err := verify.ParseNamespace(s)
		require.NoError(t, err)
		require.EqualValues(t, s, ns)
	}
	for _, s := range []string{"", "-", "Team", "a.b", "a_b", "-a", "a-", strings.Repeat("a", 64), "a/b", "a\n", "é", "a:b"} {
		_, err := verify.ParseNamespace(s)
		require.Error(t, err, "%q", s)
	}
}

func TestOnlyTheSameQuestionIsRecalled(t *testing.T) {
	r := newRegistry()
	r.tags["v1"] = appDigest
	r.manifest(t, true, "k1:"+appDigest.String())
	e := engine(newCache(), verify.Options{})
	kept := config(tier(t, r, anyA, verifier(t, "a", "k1")))
	require.Equal(t, policy.Allowed, e.Verify(t.Context(), kept, ref(t, "r.example.com/app:v1")).Verdict.Outcome())
	result, ok := e.Recall(kept, ref(t, "r.example.com/app:v1"))
	require.True(t, ok)
	require.True(t, result.Cached)
	require.Equal(t, appDigest, result.Digest)
	_, ok = e.Recall(kept, ref(t, "r.example.com/app@"+appDigest.String()))
	require.True(t, ok, "a verdict is about a digest, whatever named it")
	for name, change := range map[string]func(*verify.Config){
		"another namespace":  func(c *verify.Config) { c.Namespace = "team-b" },
		"another life of it": func(c *verify.Config) { c.UID = "2" },
		"another generation": func(c *verify.Config) { c.Generation = "2" },
	} {
		changed := *kept
		change(&changed)
		for _, spelling := range []string{"r.example.com/app:v1", "r.example.com/app@" + appDigest.String()} {
			result, ok := e.Recall(&changed, ref(t, spelling))
			require.False(t, ok, name)
			require.NotEqual(t, policy.Allowed, result.Verdict.Outcome())
		}
	}
	for _, other := range []string{"r.example.com/app:v2", "r.example.com/other:v1", "r.example.com/other@" + appDigest.String()} {
		_, ok := e.Recall(kept, ref(t, other))
		require.False(t, ok, other)
	}
}
