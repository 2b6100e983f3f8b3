package compile

import (
	"crypto"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
)

// SignersOf returns the Signers of a Cosign or Attestation verifier, nil for others.
func SignersOf(spec v1beta1.VerifierSpec) *v1beta1.Signers {
	switch {
	case spec.Cosign != nil:
		return &spec.Cosign.Signers
	case spec.Attestation != nil:
		return &spec.Attestation.Signers
	}
	return nil
}

// InlineKeys returns the keys in a verifier's own spec, "" if there are none.
func InlineKeys(spec v1beta1.VerifierSpec) string {
	if s := SignersOf(spec); s != nil && s.Keys != nil {
		return s.Keys.Inline
	}
	return ""
}

// logOf returns the setting of a Signers field for transparency logs.
func logOf(spec v1beta1.Signers) v1beta1.TransparencyLog {
	switch {
	case spec.Keyless != nil:
		return spec.Keyless.TransparencyLog
	case spec.Keys != nil:
		return spec.Keys.TransparencyLog
	}
	return v1beta1.TransparencyLog{}
}

// signers is a compiled Signers field.
type signers struct {
	cosign.Signers
	keys []string // fingerprints of the trusted keys; nil for keyless identities, which are unbounded
	used []string // fingerprints of the trust stores
}

func cosignChecker(source policy.ObjectRef, spec v1beta1.CosignVerifier, stores TrustStores) (verify.Checker, []string, []string, error) {
	s, untrusted := compileSigners("spec.cosign", source, spec.Signers, stores)
	checker, err := cosign.New(cosign.Options{Signers: s.Signers, Annotations: spec.Annotations, MatchRepository: spec.MatchRepository})
	if err := ownFirst("spec.cosign", err, untrusted); err != nil {
		return nil, nil, nil, err
	}
	return checker, s.keys, s.used, nil
}

func attestationChecker(source policy.ObjectRef, spec v1beta1.AttestationVerifier,
	stores TrustStores) (verify.Checker, []string, []string, error) {
	s, untrusted := compileSigners("spec.attestation", source, spec.Signers, stores)
	if long := predicateURI(spec.PredicateType); long != "" {
		return nil, nil, nil,
			fmt.Errorf("spec.attestation.predicateType is %s, a name that only cosign's commands know; write the type that attestations have: %s",
				spec.PredicateType, long)
	}
	checker, err := cosign.NewAttestation(cosign.AttestationOptions{Signers: s.Signers, PredicateType: spec.PredicateType,
		Expression: spec.Expression})
	if err := ownFirst("spec.attestation", err, untrusted); err != nil {
		return nil, nil, nil, err
	}
	return checker, s.keys, s.used, nil
}

// ownFirst returns the errors to report of err, from package cosign, and untrusted, from
// compileSigners: a field of the verifier itself comes before an unusable trust store.
// Otherwise lint would not report the field, because it fetches no roots and keys.
func ownFirst(field string, err, untrusted error) error {
	var own *cosign.FieldError
	switch {
	case untrusted != nil && !errors.As(err, &own):
		return untrusted
	case err != nil:
		return errors.Join(belowField(field, err), untrusted)
	}
	return nil
}

// belowField prefixes an error of package cosign with the path of a field.
func belowField(field string, err error) error {
	var below *cosign.FieldError
	if errors.As(err, &below) {
		return fmt.Errorf("%s.%s: %w", field, below.Field, below.Err)
	}
	return fmt.Errorf("%s: %w", field, err)
}

func compileSigners(field string, source policy.ObjectRef, spec v1beta1.Signers, stores TrustStores) (compiled signers, err error) {
	switch {
	case spec.Keyless != nil:
		err = compiled.trustIdentities(field+".keyless", *spec.Keyless, stores)
	case spec.Keys != nil:
		err = compiled.trustKeys(field+".keys", source, *spec.Keys, stores)
	default:
		err = notKnown(field)
	}
	return compiled, err
}

// trustKeys trusts keys, which are named after source if they are in its spec.
func (s *signers) trustKeys(field string, source policy.ObjectRef, spec v1beta1.Keys, stores TrustStores) error {
	var wrong []error
	if spec.Inline != "" {
		keys, err := trust.ParsePublicKeys([]byte(spec.Inline))
		wrong = append(wrong, fieldError(field+".inline", err))
		s.add(source, 0, keys)
	}
	found, err := stores.all(field+".trustStoreRefs", spec.TrustStoreRefs, v1beta1.TrustStoreTypePublicKeys)
	wrong = append(wrong, err)
	for _, store := range found {
		s.used = append(s.used, store.Fingerprint)
		s.add(store.Source, store.hash, store.Keys)
	}
	slices.Sort(s.keys)
	s.keys = slices.Compact(s.keys)
	return errors.Join(append(wrong, s.demandLog(field, spec.TransparencyLog, stores))...)
}

// add trusts keys of one source, which sign with hash.
func (s *signers) add(source policy.ObjectRef, hash crypto.Hash, keys []trust.PublicKey) {
	for _, key := range keys {
		s.Keys = append(s.Keys, cosign.Key{Name: source.String(), Public: key.Key, Fingerprint: key.Fingerprint, Hash: hash})
		s.keys = append(s.keys, key.Fingerprint)
	}
}

// demandLog sets which logs signatures by keys must be in. A key alone proves who signed, not
// when.
func (s *signers) demandLog(field string, spec v1beta1.TransparencyLog, stores TrustStores) error {
	if s.InsecureIgnoreLog = spec.InsecureIgnoreTransparencyLog; s.InsecureIgnoreLog {
		return nil
	}
	store, err := stores.sigstoreRoot(spec)
	switch {
	case err != nil && spec.RootTrustStoreRef == nil:
		return fmt.Errorf("%s.rootTrustStoreRef: signatures by keys must be in a transparency log; %w; set it to another log's root, or "+
			"%s.insecureIgnoreTransparencyLog to true if they are in no log", field, err, field)
	case err != nil:
		return fmt.Errorf("%s.rootTrustStoreRef: %w", field, err)
	case len(store.Root.RekorLogs()) == 0:
		return fmt.Errorf("%s.rootTrustStoreRef: %s has no transparency log, so no signature could count: set "+
			"%s.insecureIgnoreTransparencyLog to true", field, store.Source, field)
	}
	s.Log, s.used = store.Root, append(s.used, store.Fingerprint)
	return nil
}

// trustIdentities sets everything except the root before it returns an error about the trust
// store.
func (s *signers) trustIdentities(field string, spec v1beta1.Keyless, stores TrustStores) (err error) {
	k := &cosign.Keyless{Expression: spec.Expression, InsecureIgnoreSCT: spec.InsecureIgnoreSCT}
	for i, identity := range spec.Identities {
		k.Identities = append(k.Identities, SignerIdentity(identity))
		if forEverybody(identity) {
			return fmt.Errorf("%s.identities[%d].subjectRegExp matches signers who have nothing in common with you, of an identity provider where anyone can get an account: write your own signer instead, such as subject https://github.com/OWNER/REPOSITORY/.github/workflows/release.yml@refs/heads/main on GitHub, https://gitlab.com/GROUP/PROJECT//.gitlab-ci.yml@refs/heads/main on GitLab, or one e-mail address; only if keyless.expression narrows it, set insecureAllowAnySubject to true", field, i)
		}
	}
	if t := spec.Thresholds; t != nil {
		k.Thresholds = cosign.Thresholds{Log: threshold(t.TransparencyLogs), SCT: threshold(t.SignedCertificateTimestamps),
			Timestamps: threshold(t.Timestamps)}
	}
	s.InsecureIgnoreLog, s.Keyless = spec.InsecureIgnoreTransparencyLog, k
	store, err := stores.sigstoreRoot(spec.TransparencyLog)
	if err != nil {
		return fmt.Errorf("%s.rootTrustStoreRef: %w", field, err)
	}
	k.Root, k.Name, s.used = store.Root, store.Source.String(), []string{store.Fingerprint}
	if err := canVouch(field, spec, store); err != nil {
		return err
	}
	return canName(field, spec, store)
}

// forEverybody reports whether a regular expression matches everyone with an account of a public identity provider
// without saying so. The schema has the same signers.
func forEverybody(identity v1beta1.Identity) bool {
	if identity.SubjectRegExp == "" || identity.InsecureAllowAnySubject || identity.InsecureIgnoreIssuer {
		return false
	}
	matches, err := SignerIdentity(identity).Matcher()
	if err != nil {
		return false // refused elsewhere
	}
	for _, signer := range [][2]string{
		{"https://token.actions.githubusercontent.com", "https://github.com/somebody-else/another-repository/.github/workflows/another.yml@refs/pull/1/merge"},
		{"https://gitlab.com", "https://gitlab.com/somebody-else/another-project//another.yml@refs/merge-requests/1/merge"},
		{"https://agent.buildkite.com", "https://buildkite.com/somebody-else/another-pipeline"},
		{"https://accounts.google.com", "somebody-else@gmail.com"}, {"https://github.com/login/oauth", "somebody-else@gmail.com"},
		{"https://login.microsoftonline.com", "somebody-else@gmail.com"}, {"https://oauth2.sigstore.dev/auth", "somebody-else@gmail.com"},
	} {
		if matches(signer[0], signer[1]) {
			return true
		}
	}
	return false
}

// predicateURI returns the predicate type that cosign writes for a short name of its option --type, "" for any other
// text.
func predicateURI(name string) string {
	switch name {
	case "custom":
		return "https://cosign.sigstore.dev/attestation/v1"
	case "slsaprovenance", "slsaprovenance02":
		return "https://slsa.dev/provenance/v0.2"
	case "slsaprovenance1":
		return "https://slsa.dev/provenance/v1"
	case "spdx", "spdxjson":
		return "https://spdx.dev/Document"
	case "cyclonedx":
		return "https://cyclonedx.org/bom"
	case "link":
		return "https://in-toto.io/Link/v1"
	case "vuln":
		return "https://cosign.sigstore.dev/attestation/vuln/v1"
	case "openvex":
		return "https://openvex.dev/ns"
	}
	return ""
}

// canVouch returns an error if no signature could ever count, because nobody in the root
// vouches as the verifier requires. For example, GitHub's root has no logs.
func canVouch(field string, spec v1beta1.Keyless, store *TrustStore) error {
	timestamps := len(store.Root.TimestampingAuthorities()) > 0
	switch {
	case spec.InsecureIgnoreTransparencyLog && !timestamps:
		return fmt.Errorf("%s.rootTrustStoreRef: %s has no timestamp authority, which must vouch for the time of signing where "+
			"insecureIgnoreTransparencyLog is true", field, store.Source)
	case !spec.InsecureIgnoreTransparencyLog && len(store.Root.RekorLogs()) == 0 && timestamps:
		return fmt.Errorf("%s.rootTrustStoreRef: %s has no transparency log, so no signature could count: set %s.insecureIgnoreTransparencyLog "+
			"to true; its timestamp authorities then vouch for the time of signing", field, store.Source, field)
	case !spec.InsecureIgnoreTransparencyLog && len(store.Root.RekorLogs()) == 0:
		return fmt.Errorf("%s.rootTrustStoreRef: %s has neither a transparency log nor a timestamp authority, so nobody vouches for the "+
			"time of signing", field, store.Source)
	case !spec.InsecureIgnoreSCT && len(store.Root.CTLogs()) == 0:
		return fmt.Errorf("%s.rootTrustStoreRef: %s has no certificate transparency log, so no signature could count: set "+
			"%s.insecureIgnoreSCT to true", field, store.Source, field)
	case len(store.Root.FulcioCertificateAuthorities()) == 0:
		return fmt.Errorf("%s.rootTrustStoreRef: %s has no CA", field, store.Source)
	}
	return nil
}

// canName returns an error if an identity ignores the issuer although anyone can get a certificate, or if it only
// seems to accept certificates without an issuer: no regular expression accepts those.
func canName(field string, spec v1beta1.Keyless, store *TrustStore) error {
	public := slices.ContainsFunc(store.Root.FulcioCertificateAuthorities(), func(authority root.CertificateAuthority) bool {
		ca, ok := authority.(*root.FulcioCertificateAuthority)
		return ok && ca.Root != nil &&
			slices.ContainsFunc(ca.Root.Subject.Organization, func(name string) bool { return name == "sigstore.dev" || name == "sigstage.dev" })
	})
	for i, identity := range spec.Identities {
		switch {
		case identity.InsecureIgnoreIssuer && public:
			return fmt.Errorf("%s.identities[%d].insecureIgnoreIssuer: anyone can get a certificate of Sigstore's public CA, which %s "+
				"trusts; set issuer", field, i, store.Source)
		case !public && identity.IssuerRegExp != "" && matchesNothing(identity.IssuerRegExp):
			return fmt.Errorf("%s.identities[%d].issuerRegExp matches an empty issuer, but a certificate without an issuer never counts: write an "+
				"expression that needs a character, such as .+, or if the certificates of %s name no issuer, set insecureIgnoreIssuer to true instead",
				field, i, store.Source)
		}
	}
	return nil
}

// matchesNothing reports whether a regular expression matches the empty text. An invalid one is refused elsewhere.
func matchesNothing(expression string) bool {
	if _, err := cel.RegexpSize(expression); err != nil {
		return false
	}
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && compiled.MatchString("")
}

// SignerIdentity returns an identity in the form that the checker compares.
func SignerIdentity(spec v1beta1.Identity) cosign.Identity {
	return cosign.Identity{Issuer: spec.Issuer, IssuerRegExp: spec.IssuerRegExp, InsecureIgnoreIssuer: spec.InsecureIgnoreIssuer,
		Subject: spec.Subject, SubjectRegExp: spec.SubjectRegExp}
}

// threshold returns a threshold, zero if it is not set.
func threshold(count *int32) int {
	if count == nil {
		return 0
	}
	return int(*count)
}
