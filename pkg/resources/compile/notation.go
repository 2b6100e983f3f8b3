package compile

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
)

func notationChecker(name string, spec v1beta1.NotationVerifier, stores TrustStores, revokers Revokers) (verify.Checker, []string, error) {
	options := notation.Options{Name: name, TrustedIdentities: spec.TrustedIdentities}
	if err := checkSchemes(spec); err != nil {
		return nil, nil, err
	}
	if err := notationModes(&options, spec, stores.owner(), revokers); err != nil {
		return nil, nil, err
	}
	used, err := notationAnchors(&options, spec, stores)
	if err != nil {
		return nil, nil, err
	}
	if spec.AWSSigner != nil {
		if options.AWSSigner, err = awsSigner(spec, stores, revokers); err != nil {
			return nil, nil, err
		}
	}
	lists, err := stores.revocationLists(&options, spec)
	if err != nil {
		return nil, nil, err
	}
	checker, err := notation.New(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.notation: %w", err)
	}
	return checker, append(used, lists...), nil
}

// checkSchemes refuses fields that contradict each other, as the CRD does.
func checkSchemes(spec v1beta1.NotationVerifier) error {
	authorities := spec.SigningAuthorities != nil && len(spec.SigningAuthorities.TrustStoreRefs) > 0
	switch {
	case spec.SigningAuthorities != nil && !authorities:
		return errors.New("spec.notation.signingAuthorities.trustStoreRefs is empty: no signing authority could be trusted")
	case len(spec.TrustStoreRefs) == 0 && !authorities:
		return errors.New("spec.notation.trustStoreRefs is empty: without a certificate nothing can be verified; name trust stores there or in spec.notation.signingAuthorities")
	case spec.AWSSigner != nil && (!authorities || len(spec.TrustStoreRefs) > 0):
		return errors.New("spec.notation.awsSigner needs spec.notation.signingAuthorities with AWS's root and no spec.notation.trustStoreRefs")
	case spec.Timestamps != nil && len(spec.TrustStoreRefs) == 0:
		return errors.New("spec.notation.timestamps is for spec.notation.trustStoreRefs: a signing authority states the time itself; remove it")
	}
	return nil
}

// notationAnchors looks up the trust stores of each kind, and returns their fingerprints.
func notationAnchors(options *notation.Options, spec v1beta1.NotationVerifier, stores TrustStores) (used []string, err error) {
	type kind struct {
		field string
		refs  []v1beta1.TrustStoreRef
		want  v1beta1.TrustStoreType
		into  *[]*x509.Certificate
	}
	kinds := []kind{{"spec.notation.trustStoreRefs", spec.TrustStoreRefs, v1beta1.TrustStoreTypeCertificates, &options.Certificates}}
	if a := spec.SigningAuthorities; a != nil {
		kinds = append(kinds, kind{"spec.notation.signingAuthorities.trustStoreRefs", a.TrustStoreRefs, v1beta1.TrustStoreTypeSigningAuthorities, &options.SigningAuthorities})
	}
	if t := spec.Timestamps; t != nil {
		if len(t.TrustStoreRefs) == 0 {
			return nil, errors.New("spec.notation.timestamps.trustStoreRefs is empty: no timestamp could be trusted")
		}
		kinds = append(kinds, kind{"spec.notation.timestamps.trustStoreRefs", t.TrustStoreRefs, v1beta1.TrustStoreTypeTimestampAuthorities, &options.TimestampAuthorities})
	}
	var wrong []error
	for _, k := range kinds {
		found, more, err := stores.certificates(k.field, k.refs, k.want)
		wrong = append(wrong, err)
		*k.into, used = found, append(used, more...)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return used, nil
}

// awsSigner returns which signatures of AWS Signer count.
func awsSigner(spec v1beta1.NotationVerifier, stores TrustStores, revokers Revokers) (*notation.AWSSigner, error) {
	made := &notation.AWSSigner{Profiles: spec.AWSSigner.Profiles}
	if err := KnownWord("spec.notation.awsSigner.revocation", spec.AWSSigner.Revocation, "", v1beta1.RevocationModeCheck, v1beta1.RevocationModeIgnore); err != nil {
		return nil, err
	}
	if spec.AWSSigner.Revocation == v1beta1.RevocationModeIgnore {
		return made, nil
	}
	const orIgnore = "or set spec.notation.awsSigner.revocation to Ignore"
	if revokers.AWSSigner == nil {
		return nil, errors.New("spec.notation.awsSigner.revocation is Check (the default), but AWS Signer cannot be asked by this build: use an image whose tag ends in -full, " + orIgnore)
	}
	as, err := awsSignerAsker(spec.SigningAuthorities.TrustStoreRefs, stores)
	if err != nil {
		return nil, fmt.Errorf("spec.notation.signingAuthorities.%w", err)
	}
	if as == nil {
		return nil, errors.New("spec.notation.awsSigner.revocation is Check (the default), but no trust store of spec.notation.signingAuthorities configures the identity for AWS Signer: set spec.awsSigner there, " + orIgnore)
	}
	revoked := revokers.AWSSigner(stores.owner(), as)
	made.Revoked = func(ctx context.Context, job notation.AWSJob) ([]string, error) {
		return revoked(ctx, external.AWSSignature(job))
	}
	return made, nil
}

// awsSignerAsker returns the identity that one of the trust stores names. A trust store of
// another scope may not stand beside it: a namespace could make signatures that AWS Signer
// is asked about as the cluster.
func awsSignerAsker(refs []v1beta1.TrustStoreRef, stores TrustStores) (as external.Identity, err error) {
	scopes := map[string]bool{}
	for i, ref := range refs {
		store, err := stores.find(ref, v1beta1.TrustStoreTypeSigningAuthorities)
		if err != nil {
			return nil, fmt.Errorf("trustStoreRefs[%d]: %w", i, err)
		}
		scopes[store.Source.Kind] = true
		switch {
		case store.awsSigner != nil && as != nil:
			return nil, errors.New("trustStoreRefs names two trust stores with spec.awsSigner, and AWS Signer is asked as one identity; remove one")
		case store.awsSigner != nil:
			as = store.awsSigner
		}
	}
	if as != nil && len(scopes) > 1 {
		return nil, errors.New("trustStoreRefs names trust stores of the namespace and of the cluster, and AWS Signer is asked as one of them; name trust stores of one kind")
	}
	return as, nil
}

// notationModes converts the enum fields.
func notationModes(options *notation.Options, spec v1beta1.NotationVerifier, owner verify.Namespace, revokers Revokers) (err error) {
	timestamps, revocation := v1beta1.TimestampMode(""), revocationOf(spec)
	if spec.Timestamps != nil {
		timestamps = spec.Timestamps.VerifyTimestamp
	}
	if err := cmp.Or(KnownWord("spec.notation.level", spec.Level, "", v1beta1.NotationLevelStrict, v1beta1.NotationLevelPermissive),
		KnownWord("spec.notation.timestamps.verifyTimestamp", timestamps, "", v1beta1.TimestampModeAlways, v1beta1.TimestampModeAfterCertificateExpiry),
		KnownWord("spec.notation.revocation", revocation, v1beta1.RevocationModeCheck, v1beta1.RevocationModeIgnore)); err != nil {
		return err
	}
	options.Level = notation.Strict
	if spec.Level == v1beta1.NotationLevelPermissive {
		options.Level = notation.Permissive
	}
	options.TimestampAfterExpiry = timestamps == v1beta1.TimestampModeAfterCertificateExpiry
	if revocation == v1beta1.RevocationModeCheck {
		if revokers.Revocation == nil {
			return errors.New("spec.notation.revocation is Check (the default), but revocation checks are not available")
		}
		options.Revocation = revokers.Revocation(owner)
	}
	options.Overrides, err = notationOverrides(spec.Overrides)
	return err
}

// revocationOf returns whether certificates are checked for revocation: by default they are,
// "strict" enforces the result and "permissive" logs it (trust store and trust policy
// specification, "Signature Verification details"). AWS Signer is asked instead, as its
// plugin for notation does.
func revocationOf(spec v1beta1.NotationVerifier) v1beta1.RevocationMode {
	switch {
	case spec.Revocation != "":
		return spec.Revocation
	case spec.AWSSigner != nil:
		return v1beta1.RevocationModeIgnore
	}
	return v1beta1.RevocationModeCheck
}

func notationOverrides(spec *v1beta1.NotationOverrides) (overrides notation.Overrides, err error) {
	if spec == nil {
		return overrides, nil
	}
	for _, check := range []struct {
		name   string
		from   v1beta1.OverrideAction
		action *notation.Action
	}{
		{"expiry", spec.Expiry, &overrides.Expiry}, {"authenticTimestamp", spec.AuthenticTimestamp, &overrides.AuthenticTimestamp},
		{"revocation", spec.Revocation, &overrides.Revocation},
	} {
		if err := KnownWord("spec.notation.overrides."+check.name, check.from, "", v1beta1.OverrideActionEnforce, v1beta1.OverrideActionLog); err != nil {
			return overrides, err
		}
		*check.action = map[v1beta1.OverrideAction]notation.Action{v1beta1.OverrideActionEnforce: notation.Enforce, v1beta1.OverrideActionLog: notation.Log}[check.from]
	}
	return overrides, nil
}

// certificates returns the certificates of trust stores of one type, and the stores'
// fingerprints.
func (ts TrustStores) certificates(field string, refs []v1beta1.TrustStoreRef, want v1beta1.TrustStoreType) (all []*x509.Certificate, used []string, err error) {
	var wrong []error
	for i, ref := range refs {
		store, err := ts.find(ref, want)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s[%d]: %w", field, i, err))
			continue
		}
		used = append(used, store.Fingerprint)
		all = append(all, store.Certificates...)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, nil, err
	}
	return all, used, nil
}

// revocationLists adds the lists of trust stores to options, and returns the stores'
// fingerprints.
func (ts TrustStores) revocationLists(options *notation.Options, spec v1beta1.NotationVerifier) (used []string, err error) {
	const field = "spec.notation.revocationListTrustStoreRefs"
	if len(spec.RevocationListTrustStoreRefs) > 0 && revocationOf(spec) != v1beta1.RevocationModeCheck {
		return nil, fmt.Errorf("%s needs spec.notation.revocation: Check", field)
	}
	for i, ref := range spec.RevocationListTrustStoreRefs {
		store, err := ts.find(ref, v1beta1.TrustStoreTypeRevocationLists)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		used = append(used, store.Fingerprint)
		for _, list := range store.lists {
			options.RevocationLists = append(options.RevocationLists, list)
		}
	}
	return used, nil
}
