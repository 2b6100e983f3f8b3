package verify_test

import (
	"context"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// other adds a manifest that refers to the image and that no verifier accepts.
func other(r *registry) {
	r.listed = append(r.listed, r.put(ocispec.MediaTypeImageManifest,
		[]byte(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.empty.v1+json"},"layers":[{"mediaType":"text/plain","digest":"`+appDigest.String()+
			`","size":2}]}`)))
}

// own precedes advice to sign.
const own = "if your build made it: "

func TestAnUnsignedImageSaysWhereWasLookedAndWhatToRun(t *testing.T) {
	pinned := "r.example.com/app@" + appDigest.String()
	tag := "the tag sha256-" + appDigest.Encoded()[:12] + "…."
	for name, c := range map[string]struct {
		kind, command string
		listed        int
		message, fix  string
	}{
		"cosign": {"Cosign", "cosign sign --key KEY", 0, "no signature was found (looked at " + tag + "sig and the referrers of this digest)",
			"cosign sign --key KEY " + pinned},
		"notation": {"Notation", "notation sign --key KEY", 0, "no signature was found (looked at the referrers of this digest)",
			"notation sign --key KEY " + pinned},
		"attestation": {"Attestation", "cosign attest --type x", 0, "no attestation was found (looked at " + tag + "att and the referrers of this digest)",
			"cosign attest --type x " + pinned},
		"another kind is there": {"Notation", "notation sign --key KEY", 1,
			"no notation signature was found (looked at the referrers of this digest, which has 1 of another kind)", "notation sign --key KEY " + pinned},
		"no command is known": {"Cosign", "", 0, "no signature was found (looked at " + tag + "sig and the referrers of this digest)", "make one for " + pinned},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			for range c.listed {
				other(r)
			}
			v := verifier(t, "a", "k1")
			v.Type, v.Command = c.kind, c.command
			result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, v)), ref(t, "r.example.com/app:v1@"+appDigest.String()))
			require.Equal(t, policy.Denied, result.Verdict.Outcome())
			require.True(t, strings.HasSuffix(result.Verdict.Reason, " for a: "+c.message), result.Verdict.Reason)
			require.Equal(t, own+c.fix, policy.Fix(result.Verdict.Remediation, result.Verdict.Command))
			require.Len(t, result.Findings, 1)
			require.Equal(t, policy.ReasonNoEvidence, result.Findings[0].Reason)
			require.Equal(t, v.Source, result.Findings[0].Source)
		})
	}
}

func TestASignatureOfTheWrongKeyNamesTheWholeCommand(t *testing.T) {
	pinned := " r.example.com/app@" + appDigest.String()
	const command = "cosign sign --key KEY --tlog-upload=false -a env=prod"
	for name, c := range map[string]struct {
		finding       policy.Finding
		command, want string
	}{
		"a wrong key": {policy.Finding{Reason: policy.ReasonWrongKey, Remediation: "sign it"}, command, own + "sign it. Command: " + command + pinned},
		"an annotation lacks": {policy.Finding{Reason: policy.ReasonWrongAnnotations, Remediation: "sign it"}, command,
			own + "sign it. Command: " + command + pinned},
		"no command is known":   {policy.Finding{Reason: policy.ReasonWrongKey, Remediation: "sign it"}, "", own + "sign it"},
		"signing is no remedy":  {policy.Finding{Reason: policy.ReasonLimitExceeded, Remediation: "make it smaller"}, command, "make it smaller"},
		"nothing is to be done": {policy.Finding{Reason: policy.ReasonWrongKey}, command, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			r.manifest(t, false, "k2:"+appDigest.String())
			v := verifier(t, "a", "k1")
			v.Checker, v.Command = finder(c.finding), c.command
			result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, v)), ref(t, "r.example.com/app@"+appDigest.String()))
			require.Equal(t, policy.Denied, result.Verdict.Outcome())
			require.Equal(t, c.want, policy.Fix(result.Verdict.Remediation, result.Verdict.Command))
		})
	}
}

func TestAnIdentityThatMustSignComesBeforeTheCommand(t *testing.T) {
	const as = "sign in the workflow w (issuer i)"
	for name, c := range map[string]struct {
		finding       policy.Finding
		command, want string
	}{
		"no signature, and people can":  {policy.Finding{}, "cosign sign", own + as + ". Command: cosign sign r.example.com/app@" + appDigest.String()},
		"no signature, and nobody can":  {policy.Finding{}, "", own + as},
		"a signature by a key":          {policy.Finding{Reason: policy.ReasonKeyed, Remediation: "only if"}, "", own + as + "; only if"},
		"a signature by somebody else":  {policy.Finding{Reason: policy.ReasonWrongIdentity, Remediation: "have it added"}, "", own + as + "; have it added"},
		"a signature of another digest": {policy.Finding{Reason: policy.ReasonWrongDigest, Remediation: "sign this image"}, "", own + "sign this image"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			v := verifier(t, "a", "k1")
			if c.finding.Reason != "" {
				r.manifest(t, false, "k2:"+appDigest.String())
				v.Checker = finder(c.finding)
			}
			v.Command, v.SignAs = c.command, as
			result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, anyA, v)), ref(t, "r.example.com/app@"+appDigest.String()))
			require.Equal(t, policy.Denied, result.Verdict.Outcome())
			require.Equal(t, c.want, policy.Fix(result.Verdict.Remediation, result.Verdict.Command))
		})
	}
}

// finder is a checker that says the same of every signature.
type finder policy.Finding

func (f finder) Accepts(s verify.Signature) bool { return s.Layer.MediaType == fakeLayer }

func (f finder) Check(context.Context, verify.Subject, verify.Signature, verify.Fetch, time.Time) (policy.Proof, error) {
	return policy.Proof{}, verify.Refuse(f.Reason, f.Message, f.Remediation)
}

func TestWhatWasNotLookedForIsNotCalledAbsent(t *testing.T) {
	r := newRegistry()
	r.manifest(t, true, "k1:"+appDigest.String())
	a, b := verifier(t, "a", "k1"), verifier(t, "b", "k2")
	either := verify.Requirement{AnyOf: []string{"a", "b"}, AtLeast: 1}
	result := engine(newCache(), verify.Options{}).Verify(t.Context(), config(tier(t, r, either, a, b)), ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, policy.Allowed, result.Verdict.Outcome())
	for _, f := range result.Findings {
		require.NotEqual(t, policy.ReasonNoEvidence, f.Reason)
	}
}

func TestAVerifierThatDoesNotApplySaysWhy(t *testing.T) {
	floating := policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "signed"}
	own := policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "p"}
	shared := verifier(t, "base", "k1")
	shared.Source = policy.ObjectRef{Kind: "ClusterVerifier", Name: "base"}
	for name, c := range map[string]struct {
		source    policy.ObjectRef
		verifiers []*verify.Verifier
		home      string
		lenient   policy.ObjectRef
		want, fix string
	}{
		"the cluster's policy, and the namespace has its own": {source: floating, verifiers: []*verify.Verifier{verifier(t, "b", "k1"), verifier(t, "c", "k1")},
			want: "team-a has Verifiers of its own, so ClusterVerifier a does not apply there",
			fix:  "create a VerificationPolicy in team-a that requires its own Verifiers (b, c), or a Verifier a there"},
		"the cluster's policy, because the namespace's only warns": {source: floating, verifiers: []*verify.Verifier{verifier(t, "b", "k1")}, lenient: own,
			want: "team-a has Verifiers of its own, so ClusterVerifier a does not apply there; VerificationPolicy team-a/p only warns, so ClusterVerificationPolicy " +
				"signed decides",
			fix: "set enforcementAction of VerificationPolicy team-a/p to Deny, and loosen its rules instead"},
		"the namespace's policy, and it has others": {source: own,
			verifiers: []*verify.Verifier{verifier(t, "b", "k1"), verifier(t, "c", "k1"), verifier(t, "d", "k1"), verifier(t, "e", "k1")},
			want:      "team-a has no Verifier a, and because it has others, no ClusterVerifier applies there",
			fix:       "require one of its Verifiers (b, c, d, and 1 more), or create Verifier a there"},
		"the namespace's policy, it has others, and so has home": {source: own, verifiers: []*verify.Verifier{verifier(t, "b", "k1")}, home: "iris",
			want: "team-a has no Verifier a, and because it has others, neither the Verifiers of iris, its Tenant's home namespace, nor ClusterVerifiers apply there",
			fix:  "require one of its Verifiers (b), create Verifier a there, or move its Verifiers to iris"},
		"the namespace's policy, and only home has others": {source: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "member", Name: "p"},
			verifiers: []*verify.Verifier{verifier(t, "b", "k1")}, home: "team-a",
			want: "neither member nor team-a, its Tenant's home namespace, has a Verifier a, and because team-a has others, no ClusterVerifier applies there",
			fix:  "require one of the Verifiers of team-a (b), or create Verifier a there"},
		"home's policy, and home has others": {source: own, verifiers: []*verify.Verifier{verifier(t, "b", "k1")}, home: "team-a",
			want: "team-a has no Verifier a, and because it has others, no ClusterVerifier applies there",
			fix:  "require one of its Verifiers (b), or create Verifier a there"},
		"the cluster's policy, and the cluster's Verifiers apply": {source: floating, verifiers: []*verify.Verifier{shared}, want: "there is no ClusterVerifier a",
			fix: "ask a cluster admin to create it, or to correct the name in the policy"},
		"the namespace's policy, and none applies": {source: own,
			want: "there is neither a Verifier a in team-a nor a ClusterVerifier of that name", fix: "create the Verifier, or correct the name in the policy"},
	} {
		t.Run(name, func(t *testing.T) {
			l := tier(t, newRegistry(), anyA, c.verifiers...)
			l.Home, l.Lenient = c.home, c.lenient
			l.Source, l.Judge.Rules()[0].Source = c.source, c.source
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), config(l), ref(t, "r.example.com/app:v1")).Verdict
			require.Equal(t, policy.Denied, verdict.Outcome())
			require.Equal(t, c.source.String()+" requires a valid signature for a: "+c.want+"; signatures were not checked yet, so more can follow. To fix: "+c.fix,
				verdict.Text())
		})
	}
}
