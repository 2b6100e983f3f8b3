package compile

import (
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/notation"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func notationChecker(name string, spec v1alpha1.NotationVerifier, stores trustStores, outside Outside) (verify.Checker, []string, error) {
	options := notation.Options{Name: name, TrustedIdentities: spec.TrustedIdentities}
	if len(spec.TrustStoreRefs) == 0 {
		return nil, nil, errors.New("spec.notation.trustStoreRefs is empty: without a certificate nothing can be verified")
	}
	if err := notationModes(&options, spec, stores.owner(), outside); err != nil {
		return nil, nil, err
	}
	var used, more []string
	var err error
	if options.Certificates, used, err = stores.certificates("spec.notation.trustStoreRefs", spec.TrustStoreRefs, v1alpha1.TrustStoreTypeCertificates); err != nil {
		return nil, nil, err
	}
	if t := spec.Timestamps; t != nil {
		if len(t.TrustStoreRefs) == 0 {
			return nil, nil, errors.New("spec.notation.timestamps.trustStoreRefs is empty: no timestamp could be trusted")
		}
		options.TimestampAuthorities, more, err = stores.certificates("spec.notation.timestamps.trustStoreRefs", t.TrustStoreRefs, v1alpha1.TrustStoreTypeTimestampAuthorities)
		if err != nil {
			return nil, nil, err
		}
	}
	lists, err := stores.revocationLists(&options, spec)
	if err != nil {
		return nil, nil, err
	}
	more = append(more, lists...)
	checker, err := notation.New(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.notation: %w", err)
	}
	return checker, append(used, more...), nil
}

// notationModes converts the enum fields.
func notationModes(options *notation.Options, spec v1alpha1.NotationVerifier, owner verify.Namespace, outside Outside) (err error) {
	switch spec.Level {
	case "", v1alpha1.NotationLevelStrict:
		options.Level = notation.Strict
	case v1alpha1.NotationLevelPermissive:
		options.Level = notation.Permissive
	default:
		return fmt.Errorf("spec.notation.level is %q, it must be Strict or Permissive", spec.Level)
	}
	if t := spec.Timestamps; t != nil {
		switch t.VerifyTimestamp {
		case "", v1alpha1.TimestampModeAlways:
		case v1alpha1.TimestampModeAfterCertificateExpiry:
			options.TimestampAfterExpiry = true
		default:
			return fmt.Errorf("spec.notation.timestamps.verifyTimestamp is %q, it must be Always or AfterCertificateExpiry", t.VerifyTimestamp)
		}
	}
	switch spec.Revocation {
	case "", v1alpha1.RevocationModeIgnore:
	case v1alpha1.RevocationModeCheck:
		if outside.Revocation == nil {
			return errors.New("spec.notation.revocation is Check, but revocation checks are not available")
		}
		options.Revocation = outside.Revocation(owner)
	default:
		return fmt.Errorf("spec.notation.revocation is %q, it must be Ignore or Check", spec.Revocation)
	}
	options.Overrides, err = notationOverrides(spec.Overrides)
	return err
}

func notationOverrides(spec *v1alpha1.NotationOverrides) (overrides notation.Overrides, err error) {
	if spec == nil {
		return overrides, nil
	}
	for _, check := range []struct {
		name   string
		from   v1alpha1.OverrideAction
		action *notation.Action
	}{
		{"expiry", spec.Expiry, &overrides.Expiry}, {"authenticTimestamp", spec.AuthenticTimestamp, &overrides.AuthenticTimestamp},
		{"revocation", spec.Revocation, &overrides.Revocation},
	} {
		switch check.from {
		case "":
		case v1alpha1.OverrideActionEnforce:
			*check.action = notation.Enforce
		case v1alpha1.OverrideActionLog:
			*check.action = notation.Log
		default:
			return overrides, fmt.Errorf("spec.notation.overrides.%s is %q, it must be Enforce or Log", check.name, check.from)
		}
	}
	return overrides, nil
}

// certificates returns the certificates of trust stores of one type, and the stores'
// fingerprints.
func (ts trustStores) certificates(field string, refs []v1alpha1.TrustStoreRef, want v1alpha1.TrustStoreType) (all []*x509.Certificate, used []string, err error) {
	for i, ref := range refs {
		store, err := ts.find(ref, want)
		if err != nil {
			return nil, nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		used = append(used, store.fingerprint)
		all = append(all, store.certificates...)
	}
	return all, used, nil
}

// revocationLists adds the lists of trust stores to options, and returns the stores'
// fingerprints.
func (ts trustStores) revocationLists(options *notation.Options, spec v1alpha1.NotationVerifier) (used []string, err error) {
	const field = "spec.notation.revocationListTrustStoreRefs"
	if len(spec.RevocationListTrustStoreRefs) > 0 && spec.Revocation != v1alpha1.RevocationModeCheck {
		return nil, fmt.Errorf("%s needs spec.notation.revocation: Check", field)
	}
	for i, ref := range spec.RevocationListTrustStoreRefs {
		store, err := ts.find(ref, v1alpha1.TrustStoreTypeRevocationLists)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		used = append(used, store.fingerprint)
		options.RevocationLists = append(options.RevocationLists, store.lists...)
	}
	return used, nil
}
