package tenant

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/cosign"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/notation"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// verifier is a compiled verifier; its fingerprint covers the trust material.
type verifier struct {
	*verify.Verifier
	fingerprint string
}

func compileVerifier(r resource[v1alpha1.VerifierSpec], stores trustStores) (verifier, error) {
	v := &verify.Verifier{Source: r.source, Type: typeOf(r.spec)}
	err := r.broken
	if err == nil {
		// Patterns first: a verifier that is broken otherwise still denies only
		// the images that it is about.
		v.Images, err = patterns("spec.images", r.spec.Images, true)
	}
	var used []string
	if err == nil {
		v.Checker, used, err = checkerOf(r, stores)
	}
	if err != nil {
		v.Checker, v.Broken = nil, fmt.Sprintf("%s cannot be used: %v", r.source, err)
	}
	return verifier{Verifier: v, fingerprint: fingerprint(r.source, r.spec, []byte(fmt.Sprintf("%q", used)), err)}, err
}

func typeOf(spec v1alpha1.VerifierSpec) string {
	switch {
	case spec.Cosign != nil:
		return string(v1alpha1.TypeCosign)
	case spec.Notation != nil:
		return string(v1alpha1.TypeNotation)
	case spec.Attestation != nil:
		return string(v1alpha1.TypeAttestation)
	}
	return ""
}

// checkerOf makes the checker that the one-of field asks for, and returns the
// fingerprints of the trust stores that it uses.
func checkerOf(r resource[v1alpha1.VerifierSpec], stores trustStores) (verify.Checker, []string, error) {
	given := 0
	for _, set := range []bool{r.spec.Cosign != nil, r.spec.Notation != nil, r.spec.Attestation != nil} {
		if set {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, nil, fmt.Errorf("spec must have exactly one of cosign, notation, attestation; it has %d", given)
	case r.spec.Cosign != nil:
		return cosignChecker(*r.spec.Cosign, stores)
	case r.spec.Notation != nil:
		return notationChecker(r.source.String(), *r.spec.Notation, stores)
	}
	return nil, nil, notBuilt("spec.attestation", "use cosign or notation")
}

func cosignChecker(spec v1alpha1.CosignVerifier, stores trustStores) (verify.Checker, []string, error) {
	options := cosign.Options{Annotations: spec.Annotations, MatchRepository: spec.MatchRepository}
	var used []string
	var err error
	switch {
	case spec.Keyless != nil && len(spec.Keys) > 0:
		return nil, nil, errors.New("spec.cosign must have exactly one of keys, keyless; it has both")
	case spec.Keyless != nil:
		used, err = keyless("spec.cosign", &options, *spec.Keyless, spec.TransparencyLog, stores)
	default:
		used, err = keys("spec.cosign", &options, spec.Keys, stores)
		if err == nil {
			used, err = logged(&options, spec, used, stores)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	checker, err := cosign.New(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.cosign: %w", err)
	}
	return checker, used, nil
}

// keys adds the keys of trust stores, and returns the fingerprints of the stores.
func keys(field string, options *cosign.Options, refs []v1alpha1.TrustStoreRef, stores trustStores) ([]string, error) {
	if len(refs) == 0 {
		return nil, fmt.Errorf("%s.keys is empty: without a key nothing can be verified", field)
	}
	var used []string
	for i, ref := range refs {
		store, err := stores.find(ref, v1alpha1.PublicKeys)
		if err != nil {
			return nil, fmt.Errorf("%s.keys[%d]: %w", field, i, err)
		}
		used = append(used, store.fingerprint)
		for _, key := range store.keys {
			options.Keys = append(options.Keys, cosignKey(store, key))
		}
	}
	return used, nil
}

// logged adds the logs that signatures by keys must be in, if they must.
func logged(options *cosign.Options, spec v1alpha1.CosignVerifier, used []string, stores trustStores) ([]string, error) {
	switch spec.TransparencyLog {
	case "", v1alpha1.TransparencyLogIgnore:
		if spec.LogTrustStore != nil {
			return nil, errors.New("spec.cosign.logTrustStore is for transparencyLog Required; remove it")
		}
		return used, nil
	case v1alpha1.TransparencyLogRequired:
	default:
		return nil, fmt.Errorf("spec.cosign.transparencyLog is %q, it must be Required or Ignore", spec.TransparencyLog)
	}
	if spec.LogTrustStore == nil {
		return nil, errors.New("spec.cosign.transparencyLog is Required, so spec.cosign.logTrustStore must name a trust store of type SigstoreRoot with the logs")
	}
	store, err := stores.find(*spec.LogTrustStore, v1alpha1.SigstoreRoot)
	if err != nil {
		return nil, fmt.Errorf("spec.cosign.logTrustStore: %w", err)
	}
	if len(store.root.RekorLogs()) == 0 {
		return nil, fmt.Errorf("spec.cosign.logTrustStore: %s has no transparency log", store.source)
	}
	options.Log = store.root
	return append(used, store.fingerprint), nil
}

// keyless adds identities and the root that vouches for them.
func keyless(field string, options *cosign.Options, spec v1alpha1.Keyless, log v1alpha1.TransparencyLogMode, stores trustStores) ([]string, error) {
	if spec.TrustStore == nil {
		return nil, notBuilt(field+".keyless without a trustStore", "name a trust store of type SigstoreRoot with the trusted_root.json")
	}
	store, err := stores.find(*spec.TrustStore, v1alpha1.SigstoreRoot)
	if err != nil {
		return nil, fmt.Errorf("%s.keyless.trustStore: %w", field, err)
	}
	k := &cosign.Keyless{Root: store.root, Name: store.source.String()}
	if k.IgnoreLog, err = ignored(field+".transparencyLog", log); err != nil {
		return nil, err
	}
	if k.IgnoreSCT, err = ignored(field+".keyless.signedCertificateTimestamps", spec.SignedCertificateTimestamps); err != nil {
		return nil, err
	}
	for _, identity := range spec.Identities {
		k.Identities = append(k.Identities, cosign.Identity{Issuer: identity.Issuer, IssuerRegExp: identity.IssuerRegExp,
			Subject: identity.Subject, SubjectRegExp: identity.SubjectRegExp})
	}
	if t := spec.Thresholds; t != nil {
		k.Thresholds, err = thresholds(field+".keyless.thresholds", *t)
	}
	options.Keyless = k
	return []string{store.fingerprint}, err
}

// ignored reads a mode whose default is Required.
func ignored(field string, mode v1alpha1.TransparencyLogMode) (bool, error) {
	switch mode {
	case "", v1alpha1.TransparencyLogRequired:
		return false, nil
	case v1alpha1.TransparencyLogIgnore:
		return true, nil
	}
	return false, fmt.Errorf("%s is %q, it must be Required or Ignore", field, mode)
}

// thresholds reads counts; one that is given is at least 1.
func thresholds(field string, spec v1alpha1.Thresholds) (cosign.Thresholds, error) {
	var made cosign.Thresholds
	for name, count := range map[string]struct {
		from *int32
		to   *int
	}{
		"transparencyLogs": {spec.TransparencyLogs, &made.Log}, "signedCertificateTimestamps": {spec.SignedCertificateTimestamps, &made.SCT},
		"timestamps": {spec.Timestamps, &made.Timestamps},
	} {
		if count.from == nil {
			continue
		}
		if *count.from < 1 {
			return made, fmt.Errorf("%s.%s is %d, it must be at least 1", field, name, *count.from)
		}
		*count.to = int(*count.from)
	}
	return made, nil
}

func cosignKey(store *trustStore, key trust.PublicKey) cosign.Key {
	return cosign.Key{Name: store.source.String(), Public: key.Key, Fingerprint: key.Fingerprint, Hash: store.hash}
}

func notationChecker(name string, spec v1alpha1.NotationVerifier, stores trustStores) (verify.Checker, []string, error) {
	options := notation.Options{Name: name, TrustedIdentities: spec.TrustedIdentities}
	switch spec.Level {
	case "", v1alpha1.LevelStrict:
		options.Level = notation.Strict
	case v1alpha1.LevelPermissive:
		options.Level = notation.Permissive
	default:
		return nil, nil, fmt.Errorf("spec.notation.level is %q, it must be Strict or Permissive", spec.Level)
	}
	switch spec.Revocation {
	case "", v1alpha1.RevocationIgnore:
	case v1alpha1.RevocationCheck:
		return nil, nil, notBuilt("spec.notation.revocation: Check", "use Ignore, the default")
	default:
		return nil, nil, fmt.Errorf("spec.notation.revocation is %q, it must be Ignore or Check", spec.Revocation)
	}
	if len(spec.TrustStores) == 0 {
		return nil, nil, errors.New("spec.notation.trustStores is empty: without a certificate nothing can be verified")
	}
	var used []string
	for i, ref := range spec.TrustStores {
		store, err := stores.find(ref, v1alpha1.Certificates)
		if err != nil {
			return nil, nil, fmt.Errorf("spec.notation.trustStores[%d]: %w", i, err)
		}
		used = append(used, store.fingerprint)
		options.Certificates = append(options.Certificates, store.certificates...)
	}
	checker, err := notation.New(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.notation: %w", err)
	}
	return checker, used, nil
}

// patterns parses image patterns; an empty list means every image where that is
// the field's default.
func patterns(field string, list []string, emptyIsAll bool) ([]image.Pattern, error) {
	if len(list) == 0 {
		if !emptyIsAll {
			return nil, fmt.Errorf("%s is empty, so it could match nothing", field)
		}
		list = []string{"**"}
	}
	parsed := make([]image.Pattern, 0, len(list))
	for i, s := range list {
		pattern, err := image.ParsePattern(s)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		parsed = append(parsed, pattern)
	}
	return parsed, nil
}

// notBuilt refuses a field that is declared but that this version cannot do.
// Ignoring it would weaken what its author asked for.
func notBuilt(field, instead string) error {
	return fmt.Errorf("%s is not available in this version of Landwaiter; %s", field, instead)
}

func wrap(field string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
