package compile

import (
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
	if err := notationModes(&options, spec, stores.Owner, revokers); err != nil {
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
	lists, err := stores.all("spec.notation.revocationListTrustStoreRefs", spec.RevocationListTrustStoreRefs,
		v1beta1.TrustStoreTypeRevocationLists)
	if err != nil {
		return nil, nil, err
	}
	for _, store := range lists {
		used = append(used, store.Fingerprint)
		for _, list := range store.lists {
			options.RevocationLists = append(options.RevocationLists, list)
		}
	}
	checker, err := notation.New(options)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.notation: %w", err)
	}
	return checker, used, nil
}

// notationAnchors returns the trust stores of each kind, and their fingerprints.
func notationAnchors(options *notation.Options, spec v1beta1.NotationVerifier, stores TrustStores) (used []string, err error) {
	type kind struct {
		field string
		refs  []v1beta1.TrustStoreRef
		want  v1beta1.TrustStoreType
		into  *[]*x509.Certificate
	}
	kinds := []kind{{"spec.notation.trustStoreRefs", spec.TrustStoreRefs, v1beta1.TrustStoreTypeCertificates, &options.Certificates}}
	if a := spec.SigningAuthorities; a != nil {
		kinds = append(kinds,
			kind{"spec.notation.signingAuthorities.trustStoreRefs", a.TrustStoreRefs, v1beta1.TrustStoreTypeSigningAuthorities,
				&options.SigningAuthorities})
	}
	if t := spec.Timestamps; t != nil {
		if len(t.TrustStoreRefs) == 0 { // no timestamp could be trusted
			return nil, notKnown("spec.notation.timestamps.trustStoreRefs")
		}
		kinds = append(kinds,
			kind{"spec.notation.timestamps.trustStoreRefs", t.TrustStoreRefs, v1beta1.TrustStoreTypeTimestampAuthorities,
				&options.TimestampAuthorities})
	}
	var wrong []error
	for _, k := range kinds {
		found, err := stores.all(k.field, k.refs, k.want)
		wrong = append(wrong, err)
		for _, store := range found {
			*k.into, used = append(*k.into, store.Certificates...), append(used, store.Fingerprint)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return used, nil
}

// awsSigner returns which signatures of AWS Signer count.
func awsSigner(spec v1beta1.NotationVerifier, stores TrustStores, revokers Revokers) (*notation.AWSSigner, error) {
	made := &notation.AWSSigner{Profiles: spec.AWSSigner.Profiles}
	switch {
	case spec.SigningAuthorities == nil:
		return nil, notKnown("spec.notation.signingAuthorities")
	case spec.AWSSigner.Revocation == v1beta1.RevocationModeIgnore:
		return made, nil
	}
	const orIgnore = "or set spec.notation.awsSigner.revocation to Ignore"
	if revokers.AWSSigner == nil {
		return nil,
			errors.New("spec.notation.awsSigner.revocation is Check (the default), but AWS Signer cannot be asked by this build: use an image " +
				"whose tag ends in -full, " + orIgnore)
	}
	const field = "spec.notation.signingAuthorities.trustStoreRefs"
	found, err := stores.all(field, spec.SigningAuthorities.TrustStoreRefs, v1beta1.TrustStoreTypeSigningAuthorities)
	if err != nil {
		return nil, err
	}
	as, err := awsSignerAsker(found)
	if err != nil {
		return nil, fmt.Errorf("%s %w", field, err)
	}
	if as == nil {
		return nil,
			errors.New("spec.notation.awsSigner.revocation is Check (the default), but no trust store of spec.notation.signingAuthorities " +
				"configures the identity for AWS Signer: set spec.awsSigner there, " + orIgnore)
	}
	revoked := revokers.AWSSigner(stores.Owner, as)
	made.Revoked = func(ctx context.Context, job notation.AWSJob) ([]string, error) {
		return revoked(ctx, external.AWSSignature(job))
	}
	return made, nil
}

// awsSignerAsker returns the identity that one of the trust stores names. All trust stores
// must have the same scope: otherwise a namespace could create signatures that AWS Signer is
// asked about with the cluster's identity.
func awsSignerAsker(stores []*TrustStore) (as external.Identity, err error) {
	scopes := map[string]bool{}
	for _, store := range stores {
		scopes[store.Source.Kind] = true
		switch {
		case store.awsSigner != nil && as != nil:
			return nil, errors.New("names two trust stores with spec.awsSigner, and AWS Signer is asked as one identity; remove one")
		case store.awsSigner != nil:
			as = store.awsSigner
		}
	}
	if as != nil && len(scopes) > 1 {
		return nil,
			errors.New("names trust stores of the namespace and of the cluster, and AWS Signer is asked as one of them; name trust " +
				"stores of one kind")
	}
	return as, nil
}

// notationModes converts the enum fields.
func notationModes(options *notation.Options, spec v1beta1.NotationVerifier, owner verify.Namespace, revokers Revokers) error {
	options.Level = notation.Strict
	if spec.Level == v1beta1.NotationLevelPermissive {
		options.Level = notation.Permissive
	}
	options.TimestampAfterExpiry = spec.Timestamps != nil && spec.Timestamps.VerifyTimestamp == v1beta1.TimestampModeAfterCertificateExpiry
	if revocationOf(spec) == v1beta1.RevocationModeCheck {
		if revokers.Revocation == nil {
			return errors.New("spec.notation.revocation is Check (the default), but revocation checks are not available")
		}
		options.Revocation = revokers.Revocation(owner)
	}
	if o := spec.Overrides; o != nil {
		options.Overrides = notation.Overrides{Expiry: overrideOf(o.Expiry), AuthenticTimestamp: overrideOf(o.AuthenticTimestamp),
			Revocation: overrideOf(o.Revocation)}
	}
	return nil
}

// revocationOf returns whether certificates are checked for revocation: by default they are,
// "strict" enforces the result and "permissive" logs it (trust store and trust policy
// specification, "Signature Verification details"). For AWS Signer, it asks AWS Signer
// instead, as the plugin for notation does.
func revocationOf(spec v1beta1.NotationVerifier) v1beta1.RevocationMode {
	if spec.Revocation == v1beta1.RevocationModeIgnore || spec.Revocation == "" && spec.AWSSigner != nil {
		return v1beta1.RevocationModeIgnore
	}
	return v1beta1.RevocationModeCheck
}

func overrideOf(action v1beta1.OverrideAction) notation.Action {
	switch action {
	case "":
		return notation.AsLevel
	case v1beta1.OverrideActionLog:
		return notation.Log
	case v1beta1.OverrideActionEnforce:
	}
	return notation.Enforce
}
