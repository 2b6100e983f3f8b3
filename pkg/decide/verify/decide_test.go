package verify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// warning makes a tier that only warns, of a policy of its own.
func warning(l verify.Tier) verify.Tier {
	l.Warns = true
	l.Source.Name = "rehearsal"
	for i := range l.Judge.Rules() {
		l.Judge.Rules()[i].Source = l.Source
	}
	return l
}

func TestAPolicyThatWarnsAddsAWarningAndChangesNothingElse(t *testing.T) {
	anyB := verify.Requirement{AnyOf: []string{"b"}, AtLeast: 1}
	for name, c := range map[string]struct {
		signers []string
		outcome policy.Outcome
		warned  bool
	}{
		"both signed":          {[]string{"k1", "k2"}, policy.Allowed, false},
		"the enforced one":     {[]string{"k1"}, policy.Allowed, true},
		"the rehearsed one":    {[]string{"k2"}, policy.Denied, false},
		"nobody":               {nil, policy.Denied, false},
		"somebody else's only": {[]string{"k3"}, policy.Denied, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			var signed []string
			for _, signer := range c.signers {
				signed = append(signed, signer+":"+appDigest.String())
			}
			r.manifest(t, true, signed...)
			a, b := verifier(t, "a", "k1"), verifier(t, "b", "k2")
			enforced, rehearsed := tier(t, r, anyA, a, b), warning(tier(t, r, anyB, a, b))
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(enforced, rehearsed), ref(t, "r.example.com/app@"+appDigest.String())).Verdict
			require.Equal(t, c.outcome, verdict.Outcome(), verdict.Reason)
			require.Equal(t, c.warned, verdict.Warning != "", verdict.Warning)
			require.False(t, verdict.Unverified)
		})
	}
}

func TestEvidenceForAWarningDelaysNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick, slow := newRegistry(), newRegistry()
		quick.manifest(t, true, "k1:"+appDigest.String())
		slow.list = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		enforced := tier(t, quick, anyA, verifier(t, "a", "k1"))
		rehearsed := warning(tier(t, slow, verify.Requirement{AnyOf: []string{"b"}, AtLeast: 1}, verifier(t, "b", "k2")))
		began := time.Now()
		verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(enforced, rehearsed), ref(t, "r.example.com/app@"+appDigest.String())).Verdict
		require.Equal(t, policy.Allowed, verdict.Outcome(), verdict.Reason)
		require.True(t, verdict.Doubtful, "so that it is asked again")
		require.LessOrEqual(t, time.Since(began), time.Second)
	})
}

func TestARuleAllowsOrDeniesWithoutEvidence(t *testing.T) {
	r := newRegistry()
	r.list = func(context.Context) error { t.Error("no evidence is needed"); return nil }
	ask := func(action verify.Action, more ...verify.Tier) policy.Verdict {
		l := tier(t, r, anyA, verifier(t, "a", "k1"))
		l.Judge.Rules()[0].Action, l.Judge.Rules()[0].Require = action, nil
		return engine(newCache(), verify.Options{}).Verify(t.Context(), config(append([]verify.Tier{l}, more...)...),
			ref(t, "r.example.com/app@"+appDigest.String())).Verdict
	}
	allowed := ask(verify.Allow)
	require.Equal(t, policy.Allowed, allowed.Outcome())
	require.True(t, allowed.Unverified)
	require.Contains(t, allowed.Reason, "allowed without verification: a rule of VerificationPolicy team-a/strict allows r.example.com/app")
	require.Equal(t, policy.Denied, ask(verify.Deny).Outcome())
	require.Contains(t, ask(verify.Deny).Reason, "a rule of VerificationPolicy team-a/strict denies r.example.com/app")
	require.Equal(t, policy.Denied, ask(verify.Require).Outcome(), "a rule that requires nothing proves nothing")
	require.Equal(t, policy.Denied, ask(verify.Action(9)).Outcome())
	mandatory := verify.Tier{Registry: r, Source: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "mandatory"}}
	require.Equal(t, policy.Denied, ask(verify.Allow, mandatory).Outcome(), "a mandatory policy is not passed by a rule that allows")
	lax := verify.Tier{Registry: r, Judge: verify.ByRules(nil, verify.DefaultAllow)}
	require.True(t, ask(verify.Allow, lax).Unverified)
}

// A namespace with a Store and no Verifier of its own, and a mandatory policy: both tiers use the
// same verifier, each with its own way to the registry.
func TestEvidenceCountsForLayersOfItsRegistryOnly(t *testing.T) {
	v := verifier(t, "a", "k1")
	signed := func() *registry {
		r := newRegistry()
		r.manifest(t, true, "k1:"+appDigest.String())
		return r
	}
	unreachable := newRegistry()
	unreachable.list = func(context.Context) error { return errors.New("connection refused") }
	any := verify.Requirement{Condition: func(_ func() error, proven []policy.Finding) (bool, error) { return len(proven) > 0, nil }, AtLeast: 1}
	for name, c := range map[string]struct {
		tiers   []verify.Tier
		outcome policy.Outcome
	}{
		"a warning's evidence allows nothing":                 {[]verify.Tier{tier(t, newRegistry(), anyA, v), warning(tier(t, signed(), anyA, v))}, policy.Denied},
		"a warning's failure leaves nothing in doubt":         {[]verify.Tier{tier(t, signed(), any, v), warning(tier(t, unreachable, anyA, v))}, policy.Allowed},
		"a mandatory policy is not met by another's evidence": {[]verify.Tier{tier(t, signed(), anyA, v), tier(t, newRegistry(), anyA, v)}, policy.Denied},
		"nor where its own cannot be read":                    {[]verify.Tier{tier(t, signed(), anyA, v), tier(t, unreachable, anyA, v)}, policy.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(c.tiers...), ref(t, "r.example.com/app@"+appDigest.String())).Verdict
			require.Equal(t, c.outcome, verdict.Outcome(), verdict.Reason)
		})
	}
}

func TestATagThatOnlyAWarningNeedsDelaysNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newRegistry()
		slow.resolve = func(ctx context.Context, _ image.Reference) error { <-ctx.Done(); return ctx.Err() }
		allow := tier(t, newRegistry(), anyA, verifier(t, "a", "k1"))
		allow.Judge.Rules()[0].Require, allow.Judge.Rules()[0].Action = nil, verify.Allow
		began := time.Now()
		verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(allow, warning(tier(t, slow, anyA, verifier(t, "a", "k1")))),
			ref(t, "r.example.com/app:v1")).Verdict
		require.Equal(t, policy.Allowed, verdict.Outcome(), verdict.Reason)
		require.True(t, verdict.Doubtful)
		require.LessOrEqual(t, time.Since(began), time.Second)
		time.Sleep(time.Minute) // the work in the background ends too
	})
}
