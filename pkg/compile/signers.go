package compile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/cosign"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// signersOf returns the Signers of a Cosign or Attestation verifier, nil for others.
func signersOf(spec v1alpha1.VerifierSpec) *v1alpha1.Signers {
	switch {
	case spec.Cosign != nil:
		return &spec.Cosign.Signers
	case spec.Attestation != nil:
		return &spec.Attestation.Signers
	}
	return nil
}

// signers is a compiled Signers field.
type signers struct {
	cosign.Signers
	keys []string // fingerprints of the trusted keys; nil for keyless identities, which are unbounded
	used []string // fingerprints of the trust stores
}

func cosignChecker(spec v1alpha1.CosignVerifier, stores trustStores) (verify.Checker, []string, []string, error) {
	s, untrusted := compileSigners("spec.cosign", spec.Signers, stores)
	checker, err := cosign.New(cosign.Options{Signers: s.Signers, Annotations: spec.Annotations, MatchRepository: spec.MatchRepository})
	if err := ownFirst("spec.cosign", err, untrusted); err != nil {
		return nil, nil, nil, err
	}
	return checker, s.keys, s.used, nil
}

func attestationChecker(spec v1alpha1.AttestationVerifier, stores trustStores) (verify.Checker, []string, []string, error) {
	s, untrusted := compileSigners("spec.attestation", spec.Signers, stores)
	checker, err := cosign.NewAttestation(cosign.AttestationOptions{Signers: s.Signers, PredicateType: spec.PredicateType, Expression: spec.Expression})
	if err := ownFirst("spec.attestation", err, untrusted); err != nil {
		return nil, nil, nil, err
	}
	return checker, s.keys, s.used, nil
}

// ownFirst returns the errors to report of err, from package cosign, and untrusted, from
// compileSigners: a field of the verifier itself comes before a trust store that cannot be
// used. Lint would not see the field otherwise, because it fetches no roots and keys.
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

// belowField puts the path of a field in front of an error of package cosign.
func belowField(field string, err error) error {
	var below *cosign.FieldError
	if errors.As(err, &below) {
		return fmt.Errorf("%s.%s: %w", field, below.Field, below.Err)
	}
	return fmt.Errorf("%s: %w", field, err)
}

func compileSigners(field string, spec v1alpha1.Signers, stores trustStores) (compiled signers, err error) {
	switch {
	case spec.Keys != nil && spec.Keyless != nil, spec.Keys == nil && spec.Keyless == nil:
		return compiled, fmt.Errorf("%s must have exactly one of keys, keyless; it has %d", field, countTrue(spec.Keys != nil, spec.Keyless != nil))
	case spec.Keyless != nil:
		err = compiled.trustIdentities(field+".keyless", *spec.Keyless, stores)
	default:
		err = compiled.trustKeys(field+".keys", *spec.Keys, stores)
	}
	return compiled, err
}

func (s *signers) trustKeys(field string, spec v1alpha1.Keys, stores trustStores) error {
	if len(spec.TrustStoreRefs) == 0 {
		return fmt.Errorf("%s.trustStoreRefs is empty: without a key nothing can be verified", field)
	}
	var wrong []error
	for i, ref := range spec.TrustStoreRefs {
		store, err := stores.find(ref, v1alpha1.TrustStoreTypePublicKeys)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s.trustStoreRefs[%d]: %w", field, i, err))
			continue
		}
		s.used = append(s.used, store.fingerprint)
		for _, key := range store.keys {
			s.Keys = append(s.Keys, cosignKey(store, key))
			s.keys = append(s.keys, key.Fingerprint)
		}
	}
	slices.Sort(s.keys)
	s.keys = slices.Compact(s.keys)
	if spec.LogTrustStoreRef == nil {
		s.InsecureIgnoreLog = true // a key alone proves who signed, not when
		return errors.Join(wrong...)
	}
	store, err := stores.find(*spec.LogTrustStoreRef, v1alpha1.TrustStoreTypeSigstoreRoot)
	switch {
	case err != nil:
		wrong = append(wrong, fmt.Errorf("%s.logTrustStoreRef: %w", field, err))
	case len(store.root.RekorLogs()) == 0:
		wrong = append(wrong, fmt.Errorf("%s.logTrustStoreRef: %s has no transparency log", field, store.source))
	default:
		s.Log, s.used = store.root, append(s.used, store.fingerprint)
	}
	return errors.Join(wrong...)
}

// trustIdentities sets all but the root before it returns an error about the trust store.
func (s *signers) trustIdentities(field string, spec v1alpha1.Keyless, stores trustStores) (err error) {
	k := &cosign.Keyless{Expression: spec.Expression, InsecureIgnoreSCT: spec.InsecureIgnoreSCT}
	for _, identity := range spec.Identities {
		k.Identities = append(k.Identities, signerIdentity(identity))
	}
	if spec.Thresholds != nil {
		if k.Thresholds, err = thresholds(field+".thresholds", *spec.Thresholds); err != nil {
			return err
		}
	}
	s.InsecureIgnoreLog, s.Keyless = spec.InsecureIgnoreTransparencyLog, k
	store := stores.publicGood
	if spec.TrustStoreRef != nil {
		store, err = stores.find(*spec.TrustStoreRef, v1alpha1.TrustStoreTypeSigstoreRoot)
	} else if store.err != nil {
		err = fmt.Errorf("the default is Sigstore's public-good root, which cannot be used: %w", store.err)
	}
	if err != nil {
		return fmt.Errorf("%s.trustStoreRef: %w", field, err)
	}
	k.Root, k.Name, s.used = store.root, store.source.String(), []string{store.fingerprint}
	return canVouch(field, spec, store)
}

// canVouch returns an error if no signature could ever count, because the root has nobody
// who vouches as the verifier demands. GitHub's root, for one, has no logs.
func canVouch(field string, spec v1alpha1.Keyless, store *trustStore) error {
	timestamps := len(store.root.TimestampingAuthorities()) > 0
	switch {
	case spec.InsecureIgnoreTransparencyLog && !timestamps:
		return fmt.Errorf("%s.trustStoreRef: %s has no timestamp authority, which must vouch for the time of signing where insecureIgnoreTransparencyLog is true", field, store.source)
	case !spec.InsecureIgnoreTransparencyLog && len(store.root.RekorLogs()) == 0 && timestamps:
		return fmt.Errorf("%s.trustStoreRef: %s has no transparency log, so no signature could count: set %s.insecureIgnoreTransparencyLog to true; its timestamp authorities then vouch for the time of signing", field, store.source, field)
	case !spec.InsecureIgnoreTransparencyLog && len(store.root.RekorLogs()) == 0:
		return fmt.Errorf("%s.trustStoreRef: %s has neither a transparency log nor a timestamp authority, so nobody vouches for the time of signing", field, store.source)
	case !spec.InsecureIgnoreSCT && len(store.root.CTLogs()) == 0:
		return fmt.Errorf("%s.trustStoreRef: %s has no certificate transparency log, so no signature could count: set %s.insecureIgnoreSCT to true", field, store.source, field)
	case len(store.root.FulcioCertificateAuthorities()) == 0:
		return fmt.Errorf("%s.trustStoreRef: %s has no certificate authority", field, store.source)
	}
	return nil
}

func signerIdentity(spec v1alpha1.Identity) cosign.Identity {
	return cosign.Identity{Issuer: spec.Issuer, IssuerRegExp: spec.IssuerRegExp, Subject: spec.Subject, SubjectRegExp: spec.SubjectRegExp}
}

// thresholds converts thresholds. A threshold that is set must be at least 1.
func thresholds(field string, spec v1alpha1.Thresholds) (cosign.Thresholds, error) {
	var compiled cosign.Thresholds
	for name, count := range map[string]struct {
		from *int32
		to   *int
	}{
		"transparencyLogs": {spec.TransparencyLogs, &compiled.Log}, "signedCertificateTimestamps": {spec.SignedCertificateTimestamps, &compiled.SCT},
		"timestamps": {spec.Timestamps, &compiled.Timestamps},
	} {
		if count.from == nil {
			continue
		}
		if *count.from < 1 {
			return compiled, fmt.Errorf("%s.%s is %d, it must be at least 1", field, name, *count.from)
		}
		*count.to = int(*count.from)
	}
	return compiled, nil
}

func cosignKey(store *trustStore, key trust.PublicKey) cosign.Key {
	return cosign.Key{Name: store.source.String(), Public: key.Key, Fingerprint: key.Fingerprint, Hash: store.hash}
}
