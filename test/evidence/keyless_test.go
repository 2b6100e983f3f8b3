//go:build !e2e && !nightly

package evidence

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const (
	someone = "release@example.com"
	vouched = "https://accounts.example.com"
)

// keyless gives a namespace a verifier "release" with a specification in YAML,
// and a trust store "root" with an instance's root.
func keyless(t *testing.T, namespace string, instance *sigstore.Sigstore, spec string) func(*resource.Objects) {
	t.Helper()
	text, err := instance.TrustedRoot()
	require.NoError(t, err)
	verifier := &v1beta1.Verifier{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &verifier.Spec), spec)
	verifier.Name, verifier.Namespace = "release", namespace
	store := trustStore(namespace, "root", v1beta1.TrustStoreTypeSigstoreRoot, string(text))
	return func(o *resource.Objects) {
		o.Resources = append(o.Resources, store, verifier)
	}
}

const trustingSomeone = "{type: Cosign, cosign: {keyless: {identities: [{issuer: " + vouched + ", subject: " + someone +
	"}], rootTrustStoreRef: {name: root}, insecureIgnoreSCT: true}}}"

// signKeyless signs an image as a bundle, or in the legacy form.
func (e *environment) signKeyless(t *testing.T, instance *sigstore.Sigstore, img fixture.Image, legacy bool, options sigstore.SignOptions) {
	t.Helper()
	if legacy {
		payload, err := fixture.CosignPayload(img.Reference, nil)
		require.NoError(t, err)
		annotations, err := instance.Legacy(someone, vouched, payload, options)
		require.NoError(t, err)
		_, err = e.registry.PushLegacy(t.Context(), img, payload, annotations)
		require.NoError(t, err)
		return
	}
	text, err := instance.Bundle(someone, vouched, sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{}), options)
	require.NoError(t, err)
	target, err := e.registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, img, text)
	require.NoError(t, err)
}

func TestPrivateSigstoresOfTenantsStandSideBySide(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	ofA, err := sigstore.New()
	require.NoError(t, err)
	ofB, err := sigstore.New()
	require.NoError(t, err)
	byA, byB, legacyByA := e.signed(t, "shared/a"), e.signed(t, "shared/b"), e.signed(t, "shared/legacy")
	e.signKeyless(t, ofA, byA, false, sigstore.SignOptions{})
	e.signKeyless(t, ofB, byB, false, sigstore.SignOptions{})
	e.signKeyless(t, ofA, legacyByA, true, sigstore.SignOptions{})
	require.Empty(t, e.apply(t, keyless(t, "team-a", ofA, trustingSomeone), keyless(t, "team-b", ofB, trustingSomeone),
		e.policy(t, "team-a", "p", releaseNeeded), e.policy(t, "team-b", "p", releaseNeeded)))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", byA))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", legacyByA))
	requireOutcome(t, policy.Denied, e.outcome(t, "team-a", byB))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-b", byB))
	requireOutcome(t, policy.Denied, e.outcome(t, "team-b", byA))
	requireOutcome(t, policy.Denied, e.outcome(t, "team-b", legacyByA))
}

// Every field of a keyless verifier has a value with which the same image is
// denied.
func TestEveryKeylessFieldCounts(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	instance, err := sigstore.New()
	require.NoError(t, err)
	logged, timestamped := e.signed(t, "app/logged"), e.signed(t, "app/timestamped")
	e.signKeyless(t, instance, logged, false, sigstore.SignOptions{WithoutTimestamp: true})
	e.signKeyless(t, instance, timestamped, false, sigstore.SignOptions{WithoutLog: true})
	for name, c := range map[string]struct {
		from, to string
		img      fixture.Image
		want     policy.Outcome
	}{
		"as it is":                        {"", "", logged, policy.Allowed},
		"another issuer":                  {vouched, "https://evil.example.com", logged, policy.Denied},
		"another subject":                 {someone, "other@example.com", logged, policy.Denied},
		"issuer by expression":            {"issuer: " + vouched, `issuerRegExp: "https://.*\\.example\\.com"`, logged, policy.Allowed},
		"issuer by another expression":    {"issuer: " + vouched, `issuerRegExp: "https://other.*"`, logged, policy.Denied},
		"subject by expression":           {"subject: " + someone, `subjectRegExp: "[a-z]+@example\\.com"`, logged, policy.Allowed},
		"subject by part of it":           {"subject: " + someone, `subjectRegExp: "example"`, logged, policy.Denied},
		"SCT demanded":                    {", insecureIgnoreSCT: true", "", logged, policy.Denied},
		"two logs":                        {"SCT: true}", "SCT: true, thresholds: {transparencyLogs: 2}}", logged, policy.Denied},
		"two times":                       {"SCT: true}", "SCT: true, thresholds: {timestamps: 2}}", logged, policy.Denied},
		"one log and one time":            {"SCT: true}", "SCT: true, thresholds: {transparencyLogs: 1, timestamps: 1}}", logged, policy.Allowed},
		"log ignored: a timestamp counts": {"SCT: true}", "SCT: true, insecureIgnoreTransparencyLog: true}", timestamped, policy.Allowed},
		"log ignored: no timestamp":       {"SCT: true}", "SCT: true, insecureIgnoreTransparencyLog: true}", logged, policy.Denied},
		"log demanded":                    {"", "", timestamped, policy.Denied},
		"repository demanded":             {"SCT: true}}", "SCT: true}, matchRepository: true}", logged, policy.Denied},
		"annotation demanded":             {"SCT: true}}", "SCT: true}, annotations: {env: prod}}", logged, policy.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			spec := trustingSomeone
			if c.from != "" {
				require.Contains(t, spec, c.from)
				spec = strings.Replace(spec, c.from, c.to, 1)
			}
			require.Empty(t, e.apply(t, keyless(t, "team-a", instance, spec), e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, c.want, e.outcome(t, "team-a", c.img))
		})
	}
}

func TestKeylessVerifiersThatCannotWorkAreBrokenAndDeny(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	instance, err := sigstore.New()
	require.NoError(t, err)
	img := e.signed(t, "app/logged")
	e.signKeyless(t, instance, img, false, sigstore.SignOptions{})
	for message, spec := range map[string]string{
		"it must be of type SigstoreRoot": "{type: Cosign, cosign: {keyless: {identities: [{issuer: i, " +
			"subject: s}], rootTrustStoreRef: {name: keys}}}}",
		"TrustStore team-a/nowhere does not exist": strings.Replace(trustingSomeone, "name: root", "name: nowhere", 1),
		"Sigstore's public-good root, which cannot be used": "{type: Cosign, cosign: {keyless: {identities: [{issuer: i, " +
			"subject: s}]}}}",
		"spec.cosign.keyless.identities: must have at least 1 entry": "{type: Cosign, cosign: {keyless: {identities: [], " +
			"rootTrustStoreRef: {name: root}}}}",
		"exactly one of the fields in [issuer issuerRegExp insecureIgnoreIssuer] must be set": "{type: Cosign, cosign: {keyless: {identities: [{subject: s}], " +
			"rootTrustStoreRef: {name: root}}}}",
		"cannot be read": "{type: Cosign, cosign: {keyless: {identities: [{issuer: i, subjectRegExp: '('}], rootTrustStoreRef: {name: root}}}}",
		"thresholds.timestamps: should be greater than " +
			"or equal to 1": strings.Replace(trustingSomeone, "SCT: true}", "SCT: true, thresholds: {timestamps: 0}}", 1),
		"spec.cosign.keys.rootTrustStoreRef": "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], rootTrustStoreRef: " +
			"{name: keys}}}}",
		"exactly one of the fields in [keys keyless] " +
			"must be set": strings.Replace(trustingSomeone, "cosign: {", "cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}, ", 1),
		"spec.cosign: exactly one of the fields in [keys keyless] must be set": "{type: Cosign, cosign: {}}",
		"spec.type Cosign needs spec.cosign, and no other type may have it":    strings.Replace(trustingSomeone, "type: Cosign", "type: Notation", 1),
		"spec.type: \"\" is not supported":                                     strings.Replace(trustingSomeone, "type: Cosign, ", "", 1),
	} {
		keys := func(o *resource.Objects) {
			o.Resources = append(o.Resources, trustStore("team-a", "keys", v1beta1.TrustStoreTypePublicKeys, string(e.signer(t, "a").PEM)))
		}
		problems := e.apply(t, keyless(t, "team-a", instance, spec), keys, e.policy(t, "team-a", "p", releaseNeeded))
		require.Len(t, problems, 2, message)
		require.Contains(t, problems[0].Message, message)
		require.Equal(t, policy.ReasonReferenceNotReady, problems[1].Reason, "the policy names the verifier")
		verdict := e.outcome(t, "team-a", img)
		requireOutcome(t, policy.Denied, verdict)
		require.Contains(t, verdict.Reason, "Verifier team-a/release")
	}
}
