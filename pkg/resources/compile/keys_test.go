package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// holding is a specification of a verifier that holds keys itself.
func holding(more string, pem ...string) string {
	return fmt.Sprintf("type: Cosign\ncosign: {keys: {inline: %q%s}}", strings.Join(pem, ""), more)
}

const ignoringLogs = ", insecureIgnoreTransparencyLog: true"

func TestAVerifierThatHoldsItsKeysNeedsNoOtherResource(t *testing.T) {
	first, second := string(written.NewKey(t).PEM), string(written.NewKey(t).PEM)
	snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), written.Namespace("team-b", "2"),
		written.Object("Verifier", "team-a", "release", holding(ignoringLogs, first))))
	require.Empty(t, problems)
	tier := snapshot.For("team-a").Tiers[0]
	require.Equal(t, verify.ByVerifiers(), tier.Judge)
	require.Empty(t, tier.Judge.Why())
	require.NoError(t, tier.Verifiers[0].Broken)
	report := conditions.Reports(snapshot, "team-a")[policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"}]
	require.True(t, report.Ready.True)
	require.True(t, report.Effective.True)
	require.Len(t, report.Fingerprints, 1)
	require.Contains(t, report.Fingerprints[0], "sha256:")
	changed, _ := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), written.Namespace("team-b", "2"),
		written.Object("Verifier", "team-a", "release", holding(ignoringLogs, second))))
	require.NotEqual(t, snapshot.For("team-a").Generation, changed.For("team-a").Generation, "another key is another configuration")
	require.Equal(t, snapshot.For("team-b").Generation, changed.For("team-b").Generation)
}

func TestKeysThatAVerifierHoldsAreCountedAsSigners(t *testing.T) {
	first, second := string(written.NewKey(t).PEM), string(written.NewKey(t).PEM)
	policies := written.Object("VerificationPolicy", "team-a", "two", "rules: [{images: ['**'], require: [{anyOf: [a, b], atLeast: 2}]}]")
	for name, c := range map[string]struct {
		a, b   string
		reason policy.Reason
	}{
		"two keys":         {first, second, policy.ReasonInForce},
		"two keys in one":  {first + second, first, policy.ReasonInForce},
		"the same key":     {first, first, policy.ReasonUnsatisfiable},
		"twice in a field": {first + first, first, policy.ReasonUnsatisfiable},
	} {
		snapshot, problems := written.Compiled(written.Objects(t, written.Namespace("team-a", "1"), policies,
			written.Object("Verifier", "team-a", "a", holding(ignoringLogs, c.a)), written.Object("Verifier", "team-a", "b", holding(ignoringLogs, c.b))))
		require.Empty(t, problems, name)
		report := conditions.Reports(snapshot, "team-a")[policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "two"}]
		require.Equal(t, c.reason, report.Effective.Reason, name)
	}
}

// Keys and identities have the same default root.
func TestKeysNeedThePublicLogUnlessTheyNameAnotherOrIgnoreLogs(t *testing.T) {
	key := string(written.NewKey(t).PEM)
	now := time.Now()
	root := written.Object("TrustStore", "team-a", "root", fmt.Sprintf("type: SigstoreRoot\nsource: {inline: %q}", rootWithout(t)))
	ref := policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"}
	for name, c := range map[string]struct {
		spec      string
		fetches   bool
		condition string
	}{
		"by default": {holding("", key), true, "; it needs tuf-repo-cdn.sigstore.dev, where Sigstore's public-good root is fetched"},
		"not ignored": {holding(", insecureIgnoreTransparencyLog: false", key), true,
			"; it needs tuf-repo-cdn.sigstore.dev, where Sigstore's public-good root is fetched"},
		"attestations, too": {fmt.Sprintf("type: Attestation\nattestation: {predicateType: x, keys: {inline: %q}}", key), true,
			"; it needs tuf-repo-cdn.sigstore.dev, where Sigstore's public-good root is fetched"},
		"another root":     {holding(", rootTrustStoreRef: {name: root}", key), false, "usable"},
		"no log is wanted": {holding(ignoringLogs, key), false, "usable"},
		"keyless, by default": {"type: Cosign\ncosign: {keyless: {identities: [{issuer: i, subject: s}]}}", true,
			"; it needs tuf-repo-cdn.sigstore.dev, where Sigstore's public-good root is fetched"},
	} {
		t.Run(name, func(t *testing.T) {
			o := written.Objects(t, written.Namespace("team-a", "1"), root, written.Object("Verifier", "team-a", "release", c.spec))
			sources := resolve.Group(o).Externals()["team-a"]
			require.Equal(t, c.fetches, len(sources) == 1)
			fetched := external.Fetched{}
			for _, source := range sources {
				_, problems := written.Compiled(o)
				require.Len(t, problems, 1, "until it is fetched")
				require.Equal(t, policy.ReasonUnreadable, problems[0].Reason)
				require.Contains(t, problems[0].Message, "rootTrustStoreRef: ")
				require.Contains(t, problems[0].Message, "it is fetched from tuf-repo-cdn.sigstore.dev")
				fetched[source] = external.Value{Content: []byte(rootWithout(t)), FetchedAt: now}
			}
			snapshot, problems := resolve.Empty(outsideOf(&asked{})).Next(resolve.Group(o), fetched)
			require.Empty(t, problems)
			report := conditions.Reports(snapshot, "team-a")[ref]
			require.True(t, strings.HasSuffix(report.Ready.Message, c.condition), report.Ready.Message)
			_, ends := report.ExpiresSoon(now)
			require.Equal(t, c.fetches, ends, "the root's ends are the Verifier's")
		})
	}
}

// Notation's own verifier asks for revocation at the levels strict and permissive, and its
// plugin for AWS Signer asks AWS instead.
func TestRevocationIsCheckedUnlessAVerifierIgnoresIt(t *testing.T) {
	const aws = "signingAuthorities: {trustStoreRefs: [{name: authorities}]}, awsSigner: {profiles: [\"" + awsProfile + "\"], revocation: Ignore}"
	const plain = "trustStoreRefs: [{name: certificates}], trustedIdentities: ['*']"
	for name, c := range map[string]struct {
		notation string
		asks     bool
	}{
		"by default":             {plain, true},
		"permissive":             {plain + ", level: Permissive", true},
		"checked":                {plain + ", revocation: Check", true},
		"ignored":                {plain + ", revocation: Ignore", false},
		"AWS Signer":             {aws, false},
		"AWS Signer, and others": {aws + ", revocation: Check", true},
	} {
		t.Run(name, func(t *testing.T) {
			var a asked
			snapshot, problems := resolve.Empty(outsideOf(&a)).
				Next(resolve.Group(written.Objects(t, written.Namespace("team-a", "1"),
					written.Object("TrustStore", "team-a", "authorities", certificates(t, "SigningAuthorities", "")),
					written.Object("TrustStore", "team-a", "certificates", certificates(t, "Certificates", "")),
					written.Object("Verifier", "team-a", "release", "type: Notation\nnotation: {"+c.notation+"}"))), nil)
			require.Empty(t, problems)
			require.Equal(t, c.asks, len(a.revocation) == 1)
			report := conditions.Reports(snapshot, "team-a")[policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"}]
			require.Equal(t, c.asks, strings.Contains(report.Ready.Message, "--egress-host"), report.Ready.Message)
		})
	}
}

// Of a ClusterTrustStore from a Secret, a team is told nothing.
func TestAVerifierSaysWhichHostsRevocationNeedsAsFarAsItsTrustStoresTell(t *testing.T) {
	root, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	issuing, err := root.IssueAuthority("issuing", fixture.CertificateOptions{Responder: "http://ocsp.example.com/", Lists: "http://crl.example.com/ca.crl"})
	require.NoError(t, err)
	text := strings.ReplaceAll(strings.TrimSpace(string(issuing.CertificatePEM)), "\n", "\n    ")
	const notation = "type: Notation\nnotation: {trustStoreRefs: [%s], trustedIdentities: ['*']}"
	for name, c := range map[string]struct {
		ref, source string
		named       bool
	}{
		"its own":               {"{name: ca}", "inline: |\n    " + text, true},
		"the cluster's":         {"{kind: ClusterTrustStore, name: ca}", "inline: |\n    " + text, true},
		"the cluster's, secret": {"{kind: ClusterTrustStore, name: ca}", "secretKeyRef: {name: ca, key: ca.crt}", false},
	} {
		kind, namespaceOf := "TrustStore", "team-a"
		if strings.Contains(c.ref, "Cluster") {
			kind, namespaceOf = "ClusterTrustStore", ""
		}
		snapshot, problems := resolve.Empty(outsideOf(&asked{})).
			Next(resolve.Group(written.Objects(t, written.Namespace("team-a", "1"), written.Secret("landwaiter-system", "ca", "ca.crt", string(issuing.CertificatePEM)),
				written.Object(kind, namespaceOf, "ca", "type: Certificates\nsource:\n  "+c.source),
				written.Object("Verifier", "team-a", "release", fmt.Sprintf(notation, c.ref)))), nil)
		require.Empty(t, problems, name)
		message := conditions.Reports(snapshot, "team-a")[policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"}].Ready.Message
		require.Equal(t, c.named, strings.HasSuffix(message, ", among them crl.example.com, ocsp.example.com"), "%s: %s", name, message)
		require.Contains(t, message, "--egress-host", name)
	}
}
