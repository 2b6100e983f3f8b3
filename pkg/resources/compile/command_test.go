package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/written"
)

// The command writes to a transparency log only if the rule wants one: the default of cosign
// is a public one, and what is in it stays.
func TestVerifiersNameTheCommandThatSigns(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	const (
		keyed    = "keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}"
		logged   = "keys: {trustStoreRefs: [{name: keys}], rootTrustStoreRef: {name: root}}"
		somebody = "identities: [{issuer: i, subject: a@example.com}]"
		github   = "issuer: \"https://token.actions.githubusercontent.com\""
		workflow = "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"
		issued   = " (issuer https://token.actions.githubusercontent.com)"
		person   = "sign as a@example.com (issuer i), with the Sigstore instance that the Verifier's rootTrustStoreRef trusts"
		unlogged = " --use-signing-config=false --tlog-upload=false"
	)
	for name, c := range map[string]struct{ spec, want, as string }{
		"keys": {"type: Cosign\ncosign: {" + keyed + "}", "cosign sign --key KEY" + unlogged, ""},
		"annotations": {"type: Cosign\ncosign: {" + keyed + ", annotations: {env: prod, a: \"$(reboot)\"}}",
			"cosign sign --key KEY" + unlogged + " -a NAME=VALUE -a env=prod", ""},
		"many annotations": {"type: Cosign\ncosign: {" + keyed + ", annotations: {a: x, b: x, c: x, d: x, e: x}}",
			"cosign sign --key KEY" + unlogged + " -a a=x -a b=x -a c=x -a …", ""},
		"the repository": {"type: Cosign\ncosign: {" + keyed + ", matchRepository: true}", "cosign sign --key KEY" + unlogged + " --new-bundle-format=false", ""},
		"an attestation": {"type: Attestation\nattestation: {" + keyed + ", predicateType: \"https://slsa.dev/provenance/v1\"}",
			"cosign attest --key KEY" + unlogged + " --predicate FILE --type https://slsa.dev/provenance/v1", ""},
		"keys and a log": {"type: Cosign\ncosign: {" + logged + "}", "cosign sign --key KEY --use-signing-config=false --rekor-url URL", ""},
		"keys, a log and the repository": {"type: Cosign\ncosign: {" + logged + ", matchRepository: true}",
			"cosign sign --key KEY --use-signing-config=false --rekor-url URL --new-bundle-format=false", ""},
		"an identity": {"type: Cosign\ncosign: {keyless: {" + somebody + ", rootTrustStoreRef: {name: root}}}", "", person},
		"an identity and a " +
			"timestamp alone": {"type: Cosign\ncosign: {keyless: {" + somebody + ", rootTrustStoreRef: {name: root}, insecureIgnoreTransparencyLog: true}}", "", person},
		"AWS Signer": {"type: Notation\nnotation: {signingAuthorities: {trustStoreRefs: [{name: authorities}]}, awsSigner: {profiles: [\"" + awsProfile +
			"\"], revocation: Ignore}}",
			"notation sign --plugin com.amazonaws.signer.notation.plugin --id " + awsProfile, ""},
		"a workflow": {"type: Cosign\ncosign: {keyless: {identities: [{" + github + ", subject: \"" + workflow + "\"}], rootTrustStoreRef: {name: root}}}", "",
			"sign in the workflow " + workflow},
		"some of many workflows": {"type: Cosign\ncosign: {keyless: {identities: [{" + github + ", subjectRegExp: 'https://github\\.com/acme/app/\\.github/workflows/release\\.yml@refs/tags/v.*'}, {" + github + ", subject: \"" + workflow + "\"}, {issuer: i, subject: j}, {issuer: i, subject: k}], rootTrustStoreRef: {name: root}}}",
			"", "sign in a workflow that matches https://github\\.com/acme/app/\\.github/workflows/release\\.yml@… or in the workflow " + workflow +
				" or as one of 2 more"},
		"nobody": {"type: Cosign\ncosign: {keyless: {identities: [{" + github + ", subjectRegExp: acme/.*}], rootTrustStoreRef: {name: root}}}", "",
			"correct keyless.identities of Verifier team-a/release first: nobody can sign as a subject that matches acme/.*" + issued},
		"a workflow of a GitHub of one's own": {"type: Cosign\ncosign: {keyless: {identities: [{issuer: 'https://github.acme.example/_services/token', subject: 'https://github.acme.example/acme/app/.github/workflows/release.yml@refs/heads/main'}], rootTrustStoreRef: {name: root}}}", "",
			"sign in the workflow https://github.acme.example/acme/app/.github/workflows/release.yml@refs/heads/main (issuer https://github.acme.example/_services/token)"},
		"an issuer that is none": {"type: Cosign\ncosign: {keyless: {identities: [{issuer: 'https://github.com', subject: \"" + workflow +
			"\"}], rootTrustStoreRef: {name: root}}}", "",
			"correct keyless.identities of Verifier team-a/release first: nobody can sign in the workflow " + workflow + " (issuer https://github.com)"},
		"a long identity": {"type: Cosign\ncosign: {keyless: {identities: [{issuer: i, subject: " + strings.Repeat("x", 400) +
			"}], rootTrustStoreRef: {name: root}}}", "",
			"sign as " + strings.Repeat("x", 157) + "… (issuer i)"},
		"an odd type": {"type: Attestation\nattestation: {" + keyed + ", predicateType: \"a; reboot\"}",
			"cosign attest --key KEY" + unlogged + " --predicate FILE --type TYPE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), written.Object("TrustStore", "team-a", "keys", keys),
				written.Object("TrustStore", "team-a", "root", fmt.Sprintf("type: SigstoreRoot\nsource: {inline: %q}", rootWithout(t))),
				written.Object("TrustStore", "team-a", "authorities", certificates(t, "SigningAuthorities", "")), written.Object("Verifier", "team-a", "release", c.spec)))
			config := snapshot.For("team-a")
			require.Len(t, config.Tiers[0].Verifiers, 1)
			require.NoError(t, config.Tiers[0].Verifiers[0].Broken)
			require.Equal(t, c.want, config.Tiers[0].Verifiers[0].Command)
			require.Equal(t, c.as, config.Tiers[0].Verifiers[0].SignAs)
		})
	}
}
