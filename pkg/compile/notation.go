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
	if len(spec.TrustStores) == 0 {
		return nil, nil, errors.New("spec.notation.trustStores is empty: without a certificate nothing can be verified")
	}
	if err := notationModes(&options, spec, stores.owner, outside); err != nil {
		return nil, nil, err
	}
	var used, more []string
	var err error
	if options.Certificates, used, err = stores.certificates("spec.notation.trustStores", spec.TrustStores, v1alpha1.Certificates); err != nil {
		return nil, nil, err
	}
	options.TimestampAuthorities, more, err = stores.certificates("spec.notation.timestampAuthorities", spec.TimestampAuthorities, v1alpha1.TimestampAuthorities)
	if err != nil {
		return nil, nil, err
	}
	checker, err := notation.New(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.notation: %w", err)
	}
	return checker, append(used, more...), nil
}

// notationModes reads the fields that choose one of few values.
func notationModes(options *notation.Options, spec v1alpha1.NotationVerifier, owner verify.Namespace, outside Outside) (err error) {
	switch spec.Level {
	case "", v1alpha1.LevelStrict:
		options.Level = notation.Strict
	case v1alpha1.LevelPermissive:
		options.Level = notation.Permissive
	default:
		return fmt.Errorf("spec.notation.level is %q, it must be Strict or Permissive", spec.Level)
	}
	switch {
	case spec.VerifyTimestamp != "" && len(spec.TimestampAuthorities) == 0:
		return errors.New("spec.notation.verifyTimestamp is for spec.notation.timestampAuthorities; remove it or name authorities")
	case spec.VerifyTimestamp == "", spec.VerifyTimestamp == v1alpha1.TimestampAlways:
	case spec.VerifyTimestamp == v1alpha1.TimestampAfterExpiry:
		options.TimestampAfterExpiry = true
	default:
		return fmt.Errorf("spec.notation.verifyTimestamp is %q, it must be Always or AfterCertificateExpiry", spec.VerifyTimestamp)
	}
	switch spec.Revocation {
	case "", v1alpha1.RevocationIgnore:
	case v1alpha1.RevocationCheck:
		if outside.Revocation == nil {
			return errors.New("spec.notation.revocation is Check, which cannot be done here")
		}
		options.Revocation = outside.Revocation(owner)
	default:
		return fmt.Errorf("spec.notation.revocation is %q, it must be Ignore or Check", spec.Revocation)
	}
	options.Overrides, err = notationOverrides(spec.Overrides)
	return err
}

func notationOverrides(spec *v1alpha1.NotationOverrides) (made notation.Overrides, err error) {
	if spec == nil {
		return made, nil
	}
	for _, check := range []struct {
		name   string
		from   v1alpha1.OverrideAction
		action *notation.Action
	}{
		{"expiry", spec.Expiry, &made.Expiry}, {"authenticTimestamp", spec.AuthenticTimestamp, &made.AuthenticTimestamp},
		{"revocation", spec.Revocation, &made.Revocation},
	} {
		switch check.from {
		case "":
		case v1alpha1.OverrideEnforce:
			*check.action = notation.Enforce
		case v1alpha1.OverrideLog:
			*check.action = notation.Log
		default:
			return made, fmt.Errorf("spec.notation.overrides.%s is %q, it must be Enforce or Log", check.name, check.from)
		}
	}
	return made, nil
}

// certificates joins the certificates of trust stores of one type, and returns
// the stores' fingerprints too.
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
