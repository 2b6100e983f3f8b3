package cosign_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const (
	someone = "release@example.com"
	vouched = "https://accounts.example.com"
)

func newSigstore(t testing.TB) (*sigstore.Sigstore, root.TrustedMaterial) {
	t.Helper()
	instance, err := sigstore.New()
	require.NoError(t, err)
	text, err := instance.TrustedRoot()
	require.NoError(t, err)
	trusted, err := root.NewTrustedRootFromJSON(text)
	require.NoError(t, err)
	return instance, trusted
}

// keylessOptions trusts someone and ignores SCTs, which the instance does not issue.
func keylessOptions(trusted root.TrustedMaterial, change func(*cosign.Signers)) cosign.Options {
	signers := cosign.Signers{Keyless: &cosign.Keyless{Identities: []cosign.Identity{{Issuer: vouched, Subject: someone}}, Root: trusted,
		Name: "ClusterTrustStore root", InsecureIgnoreSCT: true}}
	if change != nil {
		change(&signers)
	}
	return cosign.Options{Signers: signers}
}

func keylessBundle(t testing.TB, s *sigstore.Sigstore, subject digest.Digest, identity, issuer string, options sigstore.SignOptions) *evidence {
	t.Helper()
	text, err := s.Bundle(identity, issuer, sigstore.Statement(subject, cosign.PredicateTypeSignature, map[string]any{}), options)
	require.NoError(t, err)
	return bundleOf(text)
}

func keylessLegacy(t testing.TB, s *sigstore.Sigstore, img fixture.Image, identity, issuer string, options sigstore.SignOptions) *evidence {
	t.Helper()
	payload, err := fixture.CosignPayload(img.Reference, nil)
	require.NoError(t, err)
	annotations, err := s.Legacy(identity, issuer, payload, options)
	require.NoError(t, err)
	return &evidence{data: payload, layer: ocispec.Descriptor{MediaType: cosign.MediaTypeSimpleSigning, Digest: digest.FromBytes(payload),
		Size: int64(len(payload)), Annotations: annotations}}
}

func TestKeylessSignaturesAreValidForTheIdentitiesThatAreTrusted(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	for form, e := range map[string]*evidence{
		"bundle":                    keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}),
		"bundle, no timestamp":      keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{WithoutTimestamp: true}),
		"legacy":                    keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{}),
		"legacy, without timestamp": keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{WithoutTimestamp: true}),
	} {
		t.Run(form, func(t *testing.T) {
			for name, c := range map[string]struct {
				identity cosign.Identity
				reason   policy.Reason
			}{
				"exact":                  {cosign.Identity{Issuer: vouched, Subject: someone}, ""},
				"expressions":            {cosign.Identity{IssuerRegExp: `https://accounts\..*`, SubjectRegExp: `.*@example\.com`}, ""},
				"another subject":        {cosign.Identity{Issuer: vouched, Subject: "other@example.com"}, policy.ReasonWrongIdentity},
				"another issuer":         {cosign.Identity{Issuer: "https://evil.example.com", Subject: someone}, policy.ReasonWrongIdentity},
				"part of the subject":    {cosign.Identity{Issuer: vouched, SubjectRegExp: `example\.com`}, policy.ReasonWrongIdentity},
				"part of the issuer":     {cosign.Identity{IssuerRegExp: `https://accounts`, Subject: someone}, policy.ReasonWrongIdentity},
				"alternatives, anchored": {cosign.Identity{Issuer: vouched, SubjectRegExp: `release|admin`}, policy.ReasonWrongIdentity},
			} {
				finding := check(newChecker(t, keylessOptions(trusted, func(k *cosign.Signers) { k.Keyless.Identities = []cosign.Identity{c.identity} })), img, e)
				if c.reason != "" {
					requireInvalid(t, finding, c.reason)
					continue
				}
				require.Equal(t, policy.Valid, finding.Result(), "%s: %s", name, finding.Message)
				require.Equal(t, vouched+" "+someone, finding.Signer())
				require.Contains(t, finding.Message, someone)
			}
			several := newChecker(t, keylessOptions(trusted, func(k *cosign.Signers) {
				k.Keyless.Identities = append([]cosign.Identity{{Issuer: "x", Subject: "y"}}, k.Keyless.Identities...)
			}))
			require.Equal(t, policy.Valid, check(several, img, e).Result(), "one of several identities")
			other := newImage(t, "r.example.com/other")
			requireInvalid(t, check(newChecker(t, keylessOptions(trusted, nil)), other, e), policy.ReasonWrongDigest)
			_, strangers := newSigstore(t)
			requireInvalid(t, check(newChecker(t, keylessOptions(strangers, nil)), img, e), policy.ReasonUntrusted)
		})
	}
}

// The library matches all identities in one step, so that what takes long must not begin.
func TestLongIdentitiesAreRefusedBeforeTheyAreMatched(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	long := func(n int) string { return "https://example.com/" + strings.Repeat("a", n-len("https://example.com/")) }
	heavy := slices.Repeat([]cosign.Identity{{Issuer: vouched, SubjectRegExp: `(?:.?.?.?.?.?.?.?.?.?.?){45}b`}}, 16)
	for name, c := range map[string]struct {
		subject    string
		identities []cosign.Identity
		want       string
	}{
		"a long subject":                 {long(8_000), []cosign.Identity{{Issuer: vouched, SubjectRegExp: ".*"}}, "subject 8000, the limit is 2048"},
		"an exact one":                   {long(8_000), []cosign.Identity{{Issuer: vouched, Subject: long(8_000)}}, "the limit is 2048"},
		"many large regular expressions": {long(1_500), heavy, "too long for the regular expressions of the Verifier"},
		"the longest":                    {long(2_048), []cosign.Identity{{Issuer: vouched, SubjectRegExp: "https://example\\.com/a*"}}, ""},
		"one that is large":              {long(500), []cosign.Identity{{IssuerRegExp: ".*", SubjectRegExp: "(?:https://example.com/)(?:a?){500}"}}, ""},
	} {
		for form, e := range map[string]*evidence{
			"bundle": keylessBundle(t, instance, img.Descriptor.Digest, c.subject, vouched, sigstore.SignOptions{}),
			"legacy": keylessLegacy(t, instance, img, c.subject, vouched, sigstore.SignOptions{}),
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				finding := check(newChecker(t, keylessOptions(trusted, func(k *cosign.Signers) { k.Keyless.Identities = c.identities })), img, e)
				if c.want == "" {
					require.Equal(t, policy.Valid, finding.Result(), finding.Message)
					return
				}
				requireInvalid(t, finding, policy.ReasonLimitExceeded)
				require.Contains(t, finding.Message, c.want)
			})
		}
	}
}

func TestTheSignersClaimsMustBeAsTheExpressionDemands(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	forms := map[string]*evidence{
		"bundle": keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}),
		"legacy": keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{}),
	}
	for expression, want := range map[string]policy.Result{
		`claims.issuer == issuer && subject.endsWith("@example.com")`: policy.Valid,
		`!has(claims.sourceRepositoryURI)`:                            policy.Valid,
		`claims.sourceRepositoryURI == "https://github.com/a/b"`:      policy.Invalid, // there is none: an error
		`has(claims.sourceRepositoryURI)`:                             policy.Invalid,
		`subject == "other@example.com"`:                              policy.Invalid,
	} {
		for form, e := range forms {
			finding := check(newChecker(t, keylessOptions(trusted, func(k *cosign.Signers) { k.Keyless.Expression = expression })), img, e)
			require.Equal(t, want, finding.Result(), "%s, %s: %s", expression, form, finding.Message)
			if want == policy.Invalid {
				requireInvalid(t, finding, policy.ReasonWrongIdentity)
			}
		}
	}
	for _, wrong := range []string{"claims.", "unknown == 1", "1 + 1", "predicate.a", `claims.sourceRepositoryUrl == "x"`, "!has(claims.sourceRepositoryUrl)"} {
		_, err := cosign.New(keylessOptions(trusted, func(k *cosign.Signers) { k.Keyless.Expression = wrong }))
		require.ErrorContains(t, err, "expression")
	}
	signed := newAttestation(t, keylessOptions(trusted, nil).Signers, `signer.subject == "`+someone+`" && signer.claims.issuer == signer.issuer`)
	e := attested(t, instance, img.Descriptor.Digest, provenance, map[string]any{})
	require.Equal(t, policy.Valid, judge(t, signed, img, e).Result())
	requireInvalid(t, judge(t, newAttestation(t, keylessOptions(trusted, nil).Signers, `signer.subject == "x"`), img, e), policy.ReasonPredicate)
	requireInvalid(t, judge(t, newAttestation(t, keylessOptions(trusted, func(k *cosign.Signers) { k.Keyless.Expression = `subject == "x"` }).Signers, ""), img,
		e), policy.ReasonWrongIdentity)
}

func TestWhatVouchesForAKeylessSignatureMustBeThere(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	d := img.Descriptor.Digest
	make := map[string]func(sigstore.SignOptions) *evidence{
		"bundle": func(o sigstore.SignOptions) *evidence { return keylessBundle(t, instance, d, someone, vouched, o) },
		"legacy": func(o sigstore.SignOptions) *evidence { return keylessLegacy(t, instance, img, someone, vouched, o) },
	}
	for form, signed := range make {
		for name, c := range map[string]struct {
			options sigstore.SignOptions
			change  func(*cosign.Signers)
			valid   bool
		}{
			"logged":                       {sigstore.SignOptions{}, nil, true},
			"not logged":                   {sigstore.SignOptions{WithoutLog: true}, nil, false},
			"log ignored, timestamp there": {sigstore.SignOptions{WithoutLog: true}, func(k *cosign.Signers) { k.InsecureIgnoreLog = true }, true},
			"log ignored, no timestamp": {sigstore.SignOptions{WithoutLog: true, WithoutTimestamp: true},
				func(k *cosign.Signers) { k.InsecureIgnoreLog = true }, false},
			"log ignored, only a log": {sigstore.SignOptions{WithoutTimestamp: true}, func(k *cosign.Signers) { k.InsecureIgnoreLog = true }, false},
			"SCT demanded":            {sigstore.SignOptions{}, func(k *cosign.Signers) { k.Keyless.InsecureIgnoreSCT = false }, false},
			"two logs demanded":       {sigstore.SignOptions{}, func(k *cosign.Signers) { k.Keyless.Thresholds.Log = 2 }, false},
			"three times demanded":    {sigstore.SignOptions{}, func(k *cosign.Signers) { k.Keyless.Thresholds.Timestamps = 3 }, false},
			"before the certificate":  {sigstore.SignOptions{Time: time.Now().Add(-30 * time.Minute), WithoutTimestamp: true}, nil, false},
			"after the certificate":   {sigstore.SignOptions{Time: time.Now().Add(30 * time.Minute), WithoutTimestamp: true}, nil, false},
		} {
			finding := check(newChecker(t, keylessOptions(trusted, c.change)), img, signed(c.options))
			if !c.valid {
				require.NotEqual(t, policy.Valid, finding.Result(), "%s, %s", form, name)
				require.Equal(t, policy.ReasonUntrusted, finding.Reason, "%s, %s: %s", form, name, finding.Message)
				continue
			}
			require.Equal(t, policy.Valid, finding.Result(), "%s, %s: %s", form, name, finding.Message)
		}
	}
}

// The library wraps the errors of other timestamps, and there are none.
func TestTooFewTimestampsAreCountedInASentenceWithoutGaps(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})
	for name, change := range map[string]func(*cosign.Signers){
		"with a log":    func(k *cosign.Signers) { k.Keyless.Thresholds.Timestamps = 3 },
		"without a log": func(k *cosign.Signers) { k.InsecureIgnoreLog, k.Keyless.Thresholds.Timestamps = true, 2 },
	} {
		finding := check(newChecker(t, keylessOptions(trusted, change)), img, e)
		requireInvalid(t, finding, policy.ReasonUntrusted)
		require.Regexp(t, `: [1-2] < [2-3]$`, finding.Message, name)
	}
}

func TestCertificatesMustBeInTransparencyLogs(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	demand := func(n int) func(*cosign.Signers) {
		return func(k *cosign.Signers) { k.Keyless.InsecureIgnoreSCT, k.Keyless.Thresholds.SCT = false, n }
	}
	for name, c := range map[string]struct {
		scts   []int
		change func(*cosign.Signers)
		valid  bool
	}{
		"in one log":                    {[]int{0}, demand(0), true},
		"in two logs":                   {[]int{0, 1}, demand(2), true},
		"forged and true":               {[]int{sigstore.Forged, 1}, demand(1), true},
		"not asked for":                 {[]int{sigstore.Forged}, nil, true},
		"in none":                       {nil, demand(0), false},
		"forged":                        {[]int{sigstore.Forged}, demand(1), false},
		"twice in one log":              {[]int{0, 0}, demand(2), false},
		"forged and true, two demanded": {[]int{sigstore.Forged, 1}, demand(2), false},
	} {
		e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{SCTs: c.scts})
		finding := check(newChecker(t, keylessOptions(trusted, c.change)), img, e)
		if !c.valid {
			requireInvalid(t, finding, policy.ReasonUntrusted)
			continue
		}
		require.Equal(t, policy.Valid, finding.Result(), "%s: %s", name, finding.Message)
	}
	_, foreign := newSigstore(t)
	e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{SCTs: []int{0}})
	requireInvalid(t, check(newChecker(t, keylessOptions(foreign, demand(1))), img, e), policy.ReasonUntrusted)
}

// Two entries of one log, or two timestamps of one authority, count once.
func TestThresholdsCountDifferentWitnesses(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	good := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})
	twice := func(name string) *evidence {
		return edited(t, good, func(bundle map[string]any) {
			material := bundle["verificationMaterial"].(map[string]any)
			if name == "tlogEntries" {
				material[name] = append(material[name].([]any), material[name].([]any)[0])
				return
			}
			data := material["timestampVerificationData"].(map[string]any)
			data["rfc3161Timestamps"] = append(data["rfc3161Timestamps"].([]any), data["rfc3161Timestamps"].([]any)[0])
		})
	}
	for name, c := range map[string]struct {
		e      *evidence
		change func(*cosign.Signers)
	}{
		"two logs":                     {twice("tlogEntries"), func(k *cosign.Signers) { k.Keyless.Thresholds.Log = 2 }},
		"two authorities":              {twice("timestamps"), func(k *cosign.Signers) { k.InsecureIgnoreLog, k.Keyless.Thresholds.Timestamps = true, 2 }},
		"three times, log twice":       {twice("tlogEntries"), func(k *cosign.Signers) { k.Keyless.Thresholds.Timestamps = 3 }},
		"three times, timestamp twice": {twice("timestamps"), func(k *cosign.Signers) { k.Keyless.Thresholds.Timestamps = 3 }},
	} {
		finding := check(newChecker(t, keylessOptions(trusted, c.change)), img, c.e)
		require.Equal(t, policy.Invalid, finding.Result(), "%s: %s", name, finding.Message)
	}
}

// A signer can put any key into a bundle.
func TestBundlesThatBringTheirOwnKeyProveNothing(t *testing.T) {
	key, stranger := newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	theirs := bundled(t, img, stranger, fixture.CosignOptions{})
	require.Equal(t, policy.Invalid, check(checker, img, theirs).Result())
	for name, material := range map[string]map[string]any{
		"as PEM":               {"publicKey": map[string]any{"hint": string(stranger.PEM)}},
		"as bytes":             {"publicKey": map[string]any{"rawBytes": stranger.PEM}},
		"beside a hint":        {"publicKey": map[string]any{"hint": "x", "rawBytes": stranger.PEM, "keyDetails": "PKIX_ECDSA_P256_SHA_256"}},
		"beside a certificate": {"publicKey": map[string]any{"hint": "x"}, "certificate": map[string]any{"rawBytes": stranger.PEM}},
	} {
		e := edited(t, theirs, func(bundle map[string]any) { bundle["verificationMaterial"] = material })
		finding := check(checker, img, e)
		require.Equal(t, policy.Invalid, finding.Result(), "%s: %s", name, finding.Message)
	}
}

func TestForeignLogEntriesAndTimestampsProveNothing(t *testing.T) {
	instance, trusted := newSigstore(t)
	img, other := newImage(t, "r.example.com/app"), newImage(t, "r.example.com/other")
	checker := newChecker(t, keylessOptions(trusted, nil))
	theirs := keylessBundle(t, instance, other.Descriptor.Digest, "other@example.com", vouched, sigstore.SignOptions{})
	part := func(e *evidence, name string) any {
		var parsed map[string]any
		require.NoError(t, json.Unmarshal(e.data, &parsed))
		material, ok := parsed["verificationMaterial"].(map[string]any)
		require.True(t, ok)
		return material[name]
	}
	ours := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})
	require.Equal(t, policy.Valid, check(checker, img, ours).Result())
	// Without a log only the timestamp vouches for the time; with a log it is not needed.
	byTimestamp := newChecker(t, keylessOptions(trusted, func(k *cosign.Signers) { k.InsecureIgnoreLog = true }))
	require.Equal(t, policy.Valid, check(byTimestamp, img, ours).Result())
	for name, checker := range map[string]*cosign.Checker{"tlogEntries": checker, "timestampVerificationData": byTimestamp, "certificate": checker} {
		stapled := edited(t, ours, func(bundle map[string]any) {
			bundle["verificationMaterial"].(map[string]any)[name] = part(theirs, name)
		})
		require.NotEqual(t, policy.Valid, check(checker, img, stapled).Result(), name)
	}
	foreign, _ := newSigstore(t)
	stranger := keylessBundle(t, foreign, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})
	requireInvalid(t, check(checker, img, stranger), policy.ReasonUntrusted)

	legacy := keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})
	strangers := keylessLegacy(t, instance, other, "other@example.com", vouched, sigstore.SignOptions{})
	for name := range legacy.layer.Annotations {
		checker := checker
		if name == "dev.sigstore.cosign/rfc3161timestamp" {
			checker = byTimestamp
		}
		stapled := &evidence{data: legacy.data, layer: legacy.layer}
		stapled.layer.Annotations = map[string]string{}
		for n, v := range legacy.layer.Annotations {
			stapled.layer.Annotations[n] = v
		}
		stapled.layer.Annotations[name] = strangers.layer.Annotations[name]
		require.NotEqual(t, policy.Valid, check(checker, img, stapled).Result(), name)
	}
}

func TestMalformedKeylessAnnotationsAreNoSignature(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	checker := newChecker(t, keylessOptions(trusted, nil))
	good := keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})
	for name, wrong := range map[string][]string{
		"dev.sigstore.cosign/certificate": {" ", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
			"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", strings.Repeat("x", 65<<10)},
		"dev.sigstore.cosign/bundle": {"x", "null", "{}", `{"Payload":{"body":{}}}`,
			`{"SignedEntryTimestamp":"AAAA","Payload":{"body":"AAAA","integratedTime":0,"logIndex":0,"logID":"00"}}`,
			`{"SignedEntryTimestamp":"AAAA","Payload":{"body":"e30=","integratedTime":1,"logIndex":0,"logID":"00"}}`, strings.Repeat("x", 65<<10)},
		"dev.sigstore.cosign/rfc3161timestamp": {"x", "null", "{}", strings.Repeat("x", 65<<10)},
	} {
		for _, value := range wrong {
			e := &evidence{data: good.data, layer: good.layer}
			e.layer.Annotations = map[string]string{}
			for n, v := range good.layer.Annotations {
				e.layer.Annotations[n] = v
			}
			e.layer.Annotations[name] = value
			finding := check(checker, img, e)
			require.Equal(t, policy.Invalid, finding.Result(), "%s: %.80s", name, value)
		}
	}
	require.Equal(t, policy.Valid, check(checker, img, good).Result())
}

func TestKeysAndIdentitiesAreNotMixedUp(t *testing.T) {
	instance, trusted := newSigstore(t)
	img, key := newImage(t, "r.example.com/app"), newKey(t, fixture.ECDSAP256)
	identity, keys := newChecker(t, keylessOptions(trusted, nil)),
		newChecker(t,
			cosign.Options{Signers: cosign.Signers{Keys: []cosign.Key{{Name: store, Public: key.Private.Public(), Fingerprint: key.Fingerprint}},
				InsecureIgnoreLog: true}})
	requireInvalid(t, check(identity, img, bundled(t, img, key, fixture.CosignOptions{})), policy.ReasonKeyed)
	requireInvalid(t, check(identity, img, legacy(t, img, key, fixture.CosignOptions{})), policy.ReasonKeyed)
	requireInvalid(t, check(keys, img, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})), policy.ReasonKeyless)
	requireInvalid(t, check(keys, img, keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})), policy.ReasonWrongKey)
}

func TestKeysWithALogDemandTheLog(t *testing.T) {
	_, trusted := newSigstore(t)
	img, key := newImage(t, "r.example.com/app"), newKey(t, fixture.ECDSAP256)
	c := newChecker(t,
		cosign.Options{Signers: cosign.Signers{Keys: []cosign.Key{{Name: store, Public: key.Private.Public(), Fingerprint: key.Fingerprint}}, Log: trusted}})
	for name, e := range map[string]*evidence{"bundle": bundled(t, img, key, fixture.CosignOptions{}), "legacy": legacy(t, img, key, fixture.CosignOptions{})} {
		finding := check(c, img, e)
		require.Equal(t, policy.Invalid, finding.Result(), name)
		require.Contains(t, finding.Message, "transparency log", name)
	}
}

func TestAttestationsAreNoKeylessSignatures(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	text, err := instance.Bundle(someone, vouched, sigstore.Statement(img.Descriptor.Digest, "https://slsa.dev/provenance/v1", map[string]any{}),
		sigstore.SignOptions{})
	require.NoError(t, err)
	requireInvalid(t, check(newChecker(t, keylessOptions(trusted, nil)), img, bundleOf(text)), policy.ReasonWrongPredicate)
}

func TestKeylessOptionsThatTrustEverybodyAreRefused(t *testing.T) {
	_, trusted := newSigstore(t)
	many := make([]cosign.Identity, 17)
	for i := range many {
		many[i] = cosign.Identity{Issuer: vouched, Subject: someone}
	}
	for name, change := range map[string]func(*cosign.Signers){
		"no identity":    func(k *cosign.Signers) { k.Keyless.Identities = nil },
		"empty identity": func(k *cosign.Signers) { k.Keyless.Identities = []cosign.Identity{{}} },
		"no subject":     func(k *cosign.Signers) { k.Keyless.Identities = []cosign.Identity{{Issuer: vouched}} },
		"no issuer":      func(k *cosign.Signers) { k.Keyless.Identities = []cosign.Identity{{Subject: someone}} },
		"both subjects":  func(k *cosign.Signers) { k.Keyless.Identities[0].SubjectRegExp = ".*" },
		"broken pattern": func(k *cosign.Signers) {
			k.Keyless.Identities = []cosign.Identity{{Issuer: vouched, SubjectRegExp: "("}}
		},
		"a short pattern that compiles to a large program": func(k *cosign.Signers) {
			k.Keyless.Identities = []cosign.Identity{{Issuer: vouched, SubjectRegExp: "(?:" + strings.Repeat("a", 900) + "){1000}"}}
		},
		"too many": func(k *cosign.Signers) { k.Keyless.Identities = many },
		"no root":  func(k *cosign.Signers) { k.Keyless.Root = nil },
	} {
		_, err := cosign.New(keylessOptions(trusted, change))
		require.Error(t, err, name)
	}
	_, err := cosign.New(cosign.Options{Signers: cosign.Signers{Keys: trustedKeys(t), Keyless: keylessOptions(trusted, nil).Keyless}})
	require.ErrorContains(t, err, "either keys or identities")
}

func TestErrorsOfOptionsNameTheFieldAsResourcesSpellIt(t *testing.T) {
	_, trusted := newSigstore(t)
	for field, change := range map[string]func(*cosign.Signers){
		"keyless.identities":    func(k *cosign.Signers) { k.Keyless.Identities = nil },
		"keyless.identities[0]": func(k *cosign.Signers) { k.Keyless.Identities = []cosign.Identity{{}} },
		"keyless.identities[0].subjectRegExp": func(k *cosign.Signers) {
			k.Keyless.Identities = []cosign.Identity{{Issuer: vouched, SubjectRegExp: "("}}
		},
		"keyless.expression": func(k *cosign.Signers) { k.Keyless.Expression = "unknown" },
	} {
		_, err := cosign.New(keylessOptions(trusted, change))
		var wrong *cosign.FieldError
		require.ErrorAs(t, err, &wrong, field)
		require.Equal(t, field, wrong.Field)
		require.NotContains(t, wrong.Err.Error(), wrong.Field)
	}
}

func TestIgnoringTheLogMustBeSaid(t *testing.T) {
	_, root := newSigstore(t)
	for name, signers := range map[string]cosign.Signers{
		"neither log nor ignored": {Keys: trustedKeys(t)},
		"log and ignored":         {Keys: trustedKeys(t), Log: root, InsecureIgnoreLog: true},
	} {
		_, err := cosign.New(cosign.Options{Signers: signers})
		require.ErrorContains(t, err, "logs", name)
		_, err = cosign.NewAttestation(cosign.AttestationOptions{Signers: signers, PredicateType: provenance})
		require.ErrorContains(t, err, "logs", name)
	}
}

func trustedKeys(t *testing.T) []cosign.Key {
	t.Helper()
	return trusted(newKey(t, fixture.ECDSAP256))
}

// Thousands of certificates in a bundle must not cost thousands of chains.
func TestOfAChainOnlyTheFirstCertificateProvesAnything(t *testing.T) {
	instance, trusted := newSigstore(t)
	foreign, _ := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	checker := newChecker(t, keylessOptions(trusted, nil))
	for name, n := range map[string]int{"as many as fit": 9, "more than fit": 10} {
		for from, s := range map[string]*sigstore.Sigstore{"trusted": instance, "foreign": foreign} {
			long := edited(t, keylessBundle(t, s, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}), func(bundle map[string]any) {
				material := bundle["verificationMaterial"].(map[string]any)
				chain := []any{material["certificate"]}
				for range n { // each is the same as the first
					chain = append(chain, material["certificate"])
				}
				delete(material, "certificate")
				material["x509CertificateChain"] = map[string]any{"certificates": chain}
				bundle["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2"
			})
			finding := check(checker, img, long)
			want := from == "trusted" && n < 10
			require.Equal(t, want, finding.Result() == policy.Valid, "%s, %s: %s", name, from, finding.Message)
			require.Equal(t, n >= 10, finding.Reason == policy.ReasonLimitExceeded)
		}
	}
}
