package v1beta1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const profile = "arn:aws:signer:eu-west-1:123456789012:/signing-profiles/release"

// authorityRules are about signing authorities, AWS Signer and revocation lists.
func authorityRules() []rule {
	const (
		frame       = "{type: Notation, notation: {%s}}"
		refs        = "trustStoreRefs: [{name: c}]"
		identities  = "trustedIdentities: ['*']"
		authorities = "signingAuthorities: {trustStoreRefs: [{name: a}]}"
		aws         = "awsSigner: {profiles: ['" + profile + "']}"
		stamps      = "timestamps: {trustStoreRefs: [{name: t}]}"
		lists       = "revocationListTrustStoreRefs: [{name: l}]"
	)
	list := []rule{{
		kinds: both("Verifier"), path: "spec.notation", message: "spec.notation needs trustStoreRefs or signingAuthorities",
		accepted: in(frame, refs+", "+identities, authorities+", "+identities, refs+", "+authorities+", "+identities), rejected: in(frame, identities),
	}, {
		kinds: both("Verifier"), path: "spec.notation", message: "spec.notation.trustedIdentities is missing; only awsSigner can stand in for it",
		accepted: in(frame, authorities+", "+aws, authorities+", "+aws+", "+identities), rejected: in(frame, refs, authorities),
	}, {
		kinds: both("Verifier"), path: "spec.notation", message: "spec.notation.awsSigner needs signingAuthorities with AWS's root and no trustStoreRefs",
		accepted: in(frame, authorities+", "+aws), rejected: in(frame, refs+", "+aws, refs+", "+authorities+", "+aws),
	}, {
		kinds: both("Verifier"), path: "spec.notation", message: "spec.notation.timestamps is for trustStoreRefs: a signing authority states the time itself",
		accepted: in(frame, refs+", "+identities+", "+stamps, refs+", "+authorities+", "+identities+", "+stamps),
		rejected: in(frame, authorities+", "+identities+", "+stamps),
	}, {
		kinds: both("Verifier"), path: "spec.notation", message: "revocationListTrustStoreRefs needs revocation: Check",
		accepted: append(in(notationOf, "revocation: Check, "+lists, "revocation: Check", "revocation: Ignore", lists, ""),
			fmt.Sprintf(frame, authorities+", "+aws+", revocation: Check, "+lists)),
		rejected: append(in(notationOf, "revocation: Ignore, "+lists), fmt.Sprintf(frame, authorities+", "+aws+", "+lists)),
	}}
	const access = "awsSigner: {secretRef: " + secret + "}"
	return append(list, rule{
		kinds: both("TrustStore"), path: "spec", message: "spec.awsSigner is only for spec.type SigningAuthorities; remove it",
		accepted: []string{"{type: SigningAuthorities, source: {inline: x}, " + access + "}", "{type: SigningAuthorities, source: {inline: x}}"},
		rejected: in("{type: %s, source: {inline: x}, "+access+"}", "Certificates", "PublicKeys", "TimestampAuthorities", "SigstoreRoot", "RevocationLists"),
	})
}

func TestProfilesAreFullARNsOfOneAccount(t *testing.T) {
	all := crds(t)
	check := func(profile string) int {
		spec := fmt.Sprintf("{type: Notation, notation: {signingAuthorities: {trustStoreRefs: [{name: a}]}, awsSigner: {profiles: [%q]}}}", profile)
		return len(all["Verifier"].check(t, object("Verifier", spec))) + len(all["ClusterVerifier"].check(t, object("ClusterVerifier", spec)))
	}
	for _, good := range []string{profile, profile + "/AbCdEf1234", strings.Replace(profile, ":aws:", ":aws-cn:", 1),
		strings.Replace(profile, "eu-west-1", "us-gov-west-1", 1)} {
		require.Zero(t, check(good), good)
	}
	for _, bad := range []string{
		"*", "", "release", profile + "*", profile + "/*", profile + "/", strings.Replace(profile, "123456789012", "*", 1),
		strings.Replace(profile, "123456789012", "", 1),
		strings.Replace(profile, "eu-west-1", "*", 1), strings.Replace(profile, ":aws:", ":*:", 1), strings.Replace(profile, "signing-profiles", "signing-jobs", 1),
		" " + profile, profile + "\n",
	} {
		require.Equal(t, 2, check(bad), "%q", bad)
	}
}
