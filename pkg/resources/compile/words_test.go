package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

const unknownWord = "Perhaps"

// A refused policy keeps its scope, enforcementAction and tags, whatever their words are. The schema
// refuses the others before they come here: whoever adds a word to it and forgets compile lets nothing in.
func TestAWordOfAPolicyThatIsNotKnownIsTheStrictest(t *testing.T) {
	in, cluster := policy.ObjectRef{Kind: v1beta1.KindVerificationPolicy, Namespace: "team-a", Name: "p"},
		policy.ObjectRef{Kind: v1beta1.KindClusterVerificationPolicy, Name: "p"}
	spec := func(change func(*v1beta1.VerificationPolicySpec)) v1beta1.VerificationPolicySpec {
		made := v1beta1.VerificationPolicySpec{DefaultAction: v1beta1.DefaultActionAllow,
			Rules: []v1beta1.PolicyRule{{Images: []string{"**"}, Action: v1beta1.RuleActionAllow}}}
		change(&made)
		return made
	}
	compiled := func(source policy.ObjectRef, change func(*v1beta1.VerificationPolicySpec)) compile.Policy {
		p, err := compile.NewPolicy(compile.Entry[v1beta1.VerificationPolicySpec]{Source: source, Spec: spec(change)})
		require.NoError(t, err)
		return p
	}
	require.True(t, compiled(cluster, func(s *v1beta1.VerificationPolicySpec) { s.Scope = unknownWord }).Mandatory)
	require.False(t, compiled(cluster, func(s *v1beta1.VerificationPolicySpec) { s.Scope = v1beta1.PolicyScopeFallback }).Mandatory)
	require.False(t, compiled(in, func(s *v1beta1.VerificationPolicySpec) { s.Scope = v1beta1.PolicyScopeMandatory }).Mandatory, "of a namespace")
	require.True(t, compiled(in, func(s *v1beta1.VerificationPolicySpec) { s.EnforcementAction = unknownWord }).Decides())
	require.Equal(t, v1beta1.TagActionPin, compiled(in, func(s *v1beta1.VerificationPolicySpec) { s.Tags = unknownWord }).Tags)
	require.Equal(t, verify.DefaultDeny, compiled(in, func(s *v1beta1.VerificationPolicySpec) { s.DefaultAction = unknownWord }).Fallback)
	require.Equal(t, verify.DefaultDeny, compiled(cluster, func(s *v1beta1.VerificationPolicySpec) { s.DefaultAction = v1beta1.DefaultActionInherit }).Fallback,
		"no level comes after the cluster's")
	require.Equal(t, verify.Deny, compiled(in, func(s *v1beta1.VerificationPolicySpec) { s.Rules[0].Action = unknownWord }).Rules[0].Action)
	require.False(t, compiled(in, func(s *v1beta1.VerificationPolicySpec) { s.Rules[0].Index = unknownWord }).Rules[0].IndexManifests)
}

func TestWhatIsNotKnownOrMissingBreaksItsResource(t *testing.T) {
	const key = "keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}"
	for spec, kind := range map[string]string{
		"type: Perhaps\ncosign: {" + key + "}": "Verifier", "type: Cosign": "Verifier", "type: Notation\ncosign: {" + key + "}": "Verifier",
		"type: Cosign\ncosign: {}": "Verifier", "type: Cosign\ncosign: {keys: {insecureIgnoreTransparencyLog: true}}": "Verifier",
		"type: Cosign\ncosign: {keyless: {}}":                  "Verifier",
		"type: Notation\nnotation: {trustedIdentities: ['*']}": "Verifier", "type: Notation\nnotation: {awsSigner: {profiles: [\"" + awsProfile +
			"\"], revocation: Ignore}}": "Verifier",
		"type: Perhaps\nsource: {inline: x}": "TrustStore", "type: PublicKeys": "TrustStore",
		"type: PublicKeys\nsource: {vault: {address: 'https://v', path: p}}":                   "TrustStore",
		"type: PublicKeys\nsource: {kms: {uri: 'awskms:///x', serviceAccount: {name: s}}}":     "TrustStore",
		"registries: [r.example.com]\ncaBundle: {}":                                            "Store",
		"registries: [r.azurecr.io]\nidentity: {provider: Perhaps, serviceAccount: {name: s}}": "Store",
		written.PolicySpec("{}"): "VerificationPolicy", "rules: [{images: ['**']}]": "VerificationPolicy",
		"rules: [{images: ['**'], action: Allow, require: [{anyOf: [v]}]}]": "VerificationPolicy",
	} {
		_, problems := written.Compiled(written.Objects(t, written.Object(kind, "team-a", "x", spec)))
		require.NotEmpty(t, problems, spec)
		require.Equal(t, policy.ObjectRef{Kind: kind, Namespace: "team-a", Name: "x"}, problems[0].Source, spec)
	}
	_, problems := written.Compiled(
		written.Objects(t, written.Object("TrustStore", "team-a", "x", "hash: MD5\n"+written.InlineKey(string(written.NewKey(t).PEM)))))
	require.NotEmpty(t, problems)
}

// Only the word that makes a verifier laxer does.
func TestAWordOfANotationVerifierThatIsNotKnownIsTheStrictest(t *testing.T) {
	checksRevocation := func(more string) bool {
		var a asked
		_, problems := resolve.Empty(a.outside()).
			Next(resolve.Group(written.Objects(t, written.Object("TrustStore", "team-a", "certificates", certificates(t, "Certificates", "")),
				written.Object("Verifier", "team-a", "v", "type: Notation\nnotation: {trustStoreRefs: [{name: certificates}], trustedIdentities: ['*']"+more+"}"))), nil)
		require.Empty(t, problems)
		return len(a.revocation) > 0
	}
	require.True(t, checksRevocation(""))
	require.True(t, checksRevocation(", revocation: Perhaps, level: Perhaps"))
	require.False(t, checksRevocation(", revocation: Ignore"))
	require.Equal(t, notation.Enforce, compile.OverrideOf(unknownWord))
	require.Equal(t, notation.Log, compile.OverrideOf(v1beta1.OverrideActionLog))
	require.Equal(t, notation.AsLevel, compile.OverrideOf(""))
}
