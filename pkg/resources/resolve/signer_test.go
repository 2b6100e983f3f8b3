package resolve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/written"
)

// The trust material of these Verifiers comes from a server that the person's machine does not reach. Who has to sign
// is in the Verifier all the same.
func TestAPersonWhoCannotFetchTheTrustStillLearnsWhoHasToSign(t *testing.T) {
	const (
		workflow = "https://github.com/acme/web/.github/workflows/release.yml@refs/heads/main"
		keyless  = "keyless: {identities: [{issuer: 'https://token.actions.githubusercontent.com', subject: '" + workflow + "'}]"
		tuf      = "type: SigstoreRoot\nsource: {tuf: {mirror: 'https://tuf.example.com', root: '{}'}}"
		kms      = "type: PublicKeys\nsource: {kms: {uri: 'awskms:///alias/x'}}"
	)
	for name, c := range map[string]struct{ spec, store, signAs, command string }{
		"Sigstore's root":  {"type: Cosign\ncosign: {" + keyless + "}}", "", "sign in the workflow " + workflow, ""},
		"a TUF repository": {"type: Cosign\ncosign: {" + keyless + ", rootTrustStoreRef: {name: keys}}}", tuf, "sign in the workflow " + workflow, ""},
		"the root of attestations": {"type: Attestation\nattestation: {predicateType: 'https://slsa.dev/provenance/v1', " + keyless + "}}", "",
			"sign in the workflow " + workflow, ""},
		"the root for a person's name": {"type: Cosign\ncosign: {keyless: {identities: [{issuer: 'https://accounts.google.com', subject: alice@acme.example}]}}", "",
			"sign as alice@acme.example (issuer https://accounts.google.com)", "cosign sign"},
		"another root for a person": {"type: Cosign\ncosign: {keyless: {identities: [{issuer: 'https://accounts.google.com', subject: alice@acme.example}], " +
			"rootTrustStoreRef: {name: keys}}}", tuf, "sign as alice@acme.example (issuer https://accounts.google.com), with the Sigstore instance that the " +
			"Verifier's rootTrustStoreRef trusts", ""},
		"a key of a management service": {"type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}", kms, "",
			"cosign sign --key KEY --use-signing-config=false --tlog-upload=false"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []string{written.Namespace("team", "1"), written.Object("ClusterVerifier", "", "release", c.spec)}
			if c.store != "" {
				objects = append(objects, written.Object("ClusterTrustStore", "", "keys", c.store))
			}
			o := written.Objects(t, objects...)
			o.Person = true
			s, problems := written.Compiled(o)
			require.NotEmpty(t, problems)
			v := s.For("team").Tiers[0].Verifiers[0]
			require.NoError(t, v.Broken, "this machine cannot judge it, but the server may")
			require.Equal(t, c.signAs, v.SignAs)
			require.Equal(t, c.command, v.Command)
		})
	}
}
