package compile

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/cosign"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func cosignChecker(spec v1alpha1.CosignVerifier, stores trustStores) (verify.Checker, []string, error) {
	options := cosign.Options{Annotations: spec.Annotations, MatchRepository: spec.MatchRepository}
	var used []string
	var err error
	switch {
	case spec.Keyless != nil && len(spec.Keys) > 0:
		return nil, nil, errors.New("spec.cosign must have exactly one of keys, keyless; it has both")
	case spec.Keyless != nil:
		used, err = keyless("spec.cosign", &options.Signers, *spec.Keyless, spec.TransparencyLog, stores)
	default:
		used, err = keys("spec.cosign", &options.Signers, spec.Keys, stores)
		if err == nil {
			used, err = logged("spec.cosign", &options.Signers, spec.TransparencyLog, spec.LogTrustStore, used, stores)
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
func keys(field string, signers *cosign.Signers, refs []v1alpha1.TrustStoreRef, stores trustStores) ([]string, error) {
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
			signers.Keys = append(signers.Keys, cosignKey(store, key))
		}
	}
	return used, nil
}

// logged adds the logs that signatures by keys must be in, if they must.
func logged(field string, signers *cosign.Signers, mode v1alpha1.TransparencyLogMode, ref *v1alpha1.TrustStoreRef, used []string,
	stores trustStores,
) ([]string, error) {
	switch mode {
	case "", v1alpha1.TransparencyLogIgnore:
		if ref != nil {
			return nil, fmt.Errorf("%s.logTrustStore is for transparencyLog Required; remove it", field)
		}
		signers.InsecureIgnoreLog = true
		return used, nil
	case v1alpha1.TransparencyLogRequired:
	default:
		return nil, fmt.Errorf("%s.transparencyLog is %q, it must be Required or Ignore", field, mode)
	}
	if ref == nil {
		return nil, fmt.Errorf("%s.transparencyLog is Required, so %s.logTrustStore must name a trust store of type SigstoreRoot with the logs", field, field)
	}
	store, err := stores.find(*ref, v1alpha1.SigstoreRoot)
	if err != nil {
		return nil, fmt.Errorf("%s.logTrustStore: %w", field, err)
	}
	if len(store.root.RekorLogs()) == 0 {
		return nil, fmt.Errorf("%s.logTrustStore: %s has no transparency log", field, store.source)
	}
	signers.Log = store.root
	return append(used, store.fingerprint), nil
}

// keyless adds identities and the root that vouches for them.
func keyless(field string, signers *cosign.Signers, spec v1alpha1.Keyless, log v1alpha1.TransparencyLogMode, stores trustStores) ([]string, error) {
	store, err := stores.publicGood, error(nil)
	if spec.TrustStore != nil {
		store, err = stores.find(*spec.TrustStore, v1alpha1.SigstoreRoot)
	} else if store.err != nil {
		err = fmt.Errorf("without a trustStore it is Sigstore's public-good root, which cannot be used: %w", store.err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s.keyless.trustStore: %w", field, err)
	}
	k := &cosign.Keyless{Root: store.root, Name: store.source.String(), Expression: spec.Expression}
	if signers.InsecureIgnoreLog, err = ignored(field+".transparencyLog", log); err != nil {
		return nil, err
	}
	if k.InsecureIgnoreSCT, err = ignored(field+".keyless.signedCertificateTimestamps", spec.SignedCertificateTimestamps); err != nil {
		return nil, err
	}
	for _, identity := range spec.Identities {
		k.Identities = append(k.Identities, cosign.Identity{Issuer: identity.Issuer, IssuerRegExp: identity.IssuerRegExp,
			Subject: identity.Subject, SubjectRegExp: identity.SubjectRegExp})
	}
	if t := spec.Thresholds; t != nil {
		k.Thresholds, err = thresholds(field+".keyless.thresholds", *t)
	}
	signers.Keyless = k
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

// attestationChecker makes the checker of in-toto attestations.
func attestationChecker(spec v1alpha1.AttestationVerifier, stores trustStores) (verify.Checker, []string, error) {
	options := cosign.AttestationOptions{PredicateType: spec.PredicateType, Expression: spec.Expression}
	var used []string
	var err error
	switch {
	case spec.Keyless != nil && len(spec.Keys) > 0:
		return nil, nil, errors.New("spec.attestation must have exactly one of keys, keyless; it has both")
	case spec.Keyless != nil:
		used, err = keyless("spec.attestation", &options.Signers, *spec.Keyless, spec.TransparencyLog, stores)
	default:
		used, err = keys("spec.attestation", &options.Signers, spec.Keys, stores)
		if err == nil {
			used, err = logged("spec.attestation", &options.Signers, spec.TransparencyLog, spec.LogTrustStore, used, stores)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	checker, err := cosign.NewAttestation(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.attestation: %w", err)
	}
	return checker, used, nil
}

func cosignKey(store *trustStore, key trust.PublicKey) cosign.Key {
	return cosign.Key{Name: store.source.String(), Public: key.Key, Fingerprint: key.Fingerprint, Hash: store.hash}
}
