package compile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Verifier is a compiled Verifier. Its fingerprint covers the trust material.
type Verifier struct {
	*verify.Verifier
	Fingerprint string
	// Uses lists the trust stores that it names.
	Uses []policy.ObjectRef
	// Holds lists the fingerprints of the keys in its own spec.
	Holds []string
}

// Revokers look up revocations. They are called for every namespace and must be cheap.
type Revokers struct {
	// Revocation returns the transport for one namespace's revocation checks. It never blocks on
	// the network. Without it, no certificate can be checked.
	Revocation func(verify.Namespace) http.RoundTripper
	// AWSSigner returns the revocations of a signature that were fetched from AWS Signer for a
	// namespace with an identity. Nil means that AWS Signer is not available.
	AWSSigner func(verify.Namespace, external.Identity) external.RevokedOf
}

// NewVerifier compiles a Verifier, whose trust stores are in stores. A Verifier with an error
// denies.
func NewVerifier(e Entry[v1beta1.VerifierSpec], stores TrustStores, revokers Revokers) (Verifier, error) {
	v := Verifier{Verifier: &verify.Verifier{Source: e.Source, Type: string(e.Spec.Type)}}
	used, err := v.read(e, stores, revokers)
	if err != nil {
		v.Checker, v.Signers, v.Holds, used = nil, nil, nil, nil
	}
	switch {
	case resource.IsUnread(err):
		v.Checker = UnreadTrust{unknown(e.Source, err)}
	case err != nil:
		v.Broken = Unusable(e.Source, err)
	}
	v.Fingerprint = Fingerprint(e.Source, e.Spec, fmt.Appendf(nil, "%q", used), err)
	return v, err
}

// read fills v from its spec, and returns the fingerprints of the trust stores that it
// uses.
func (v *Verifier) read(e Entry[v1beta1.VerifierSpec], stores TrustStores, revokers Revokers) ([]string, error) {
	if e.Err() != nil {
		return nil, e.Err()
	}
	// Patterns first, so that a verifier with other errors denies only its images.
	var wrong, err error
	v.Images, wrong = patternsOrAll("spec.images", e.Spec.Images)
	v.Uses = TrustStoresOf(stores.Owner, e.Spec)
	spec := e.Spec
	v.Command = command(spec)
	var used []string
	switch {
	case spec.Type == v1beta1.VerifierTypeCosign && spec.Cosign != nil:
		v.Checker, v.Signers, used, err = cosignChecker(e.Source, *spec.Cosign, stores)
	case spec.Type == v1beta1.VerifierTypeNotation && spec.Notation != nil:
		v.Checker, used, err = notationChecker(e.Source.String(), *spec.Notation, stores, revokers)
	case spec.Type == v1beta1.VerifierTypeAttestation && spec.Attestation != nil:
		v.Checker, v.Signers, used, err = attestationChecker(e.Source, *spec.Attestation, stores)
	default:
		err = notKnown("spec")
	}
	if InlineKeys(spec) != "" { // then it trusts no others
		v.Holds = v.Signers
	}
	return used, errors.Join(wrong, err)
}

// UnreadTrust is the [verify.Checker] of a verifier whose trust material a person cannot read: it is
// unknown whether it accepts a signature.
type UnreadTrust struct{ Err error }

// Accepts reports true.
func (UnreadTrust) Accepts(verify.Signature) bool { return true }

// Check returns why the result is unknown.
func (u UnreadTrust) Check(context.Context, verify.Subject, verify.Signature, verify.Fetch, time.Time) (policy.Proof, error) {
	return policy.Proof{}, u.Err
}

// TrustStoresOf returns the trust stores that a verifier names, even missing ones.
func TrustStoresOf(owner verify.Namespace, spec v1beta1.VerifierSpec) []policy.ObjectRef {
	return MapSlice(resource.FieldsOfVerifier(spec), func(f resource.Field) policy.ObjectRef {
		if f.Kind == v1beta1.KindClusterTrustStore || owner == verify.Cluster {
			return policy.ObjectRef{Kind: v1beta1.KindClusterTrustStore, Name: f.Name}
		}
		return policy.ObjectRef{Kind: v1beta1.KindTrustStore, Namespace: string(owner), Name: f.Name}
	})
}

// patternsOrAll parses the image patterns of a verifier. An empty list matches every image.
func patternsOrAll(field string, list []string) ([]image.Pattern, error) {
	if len(list) == 0 {
		list = []string{"**"}
	}
	return patterns(field, list)
}

// patterns parses image patterns. An empty list is an error.
func patterns(field string, list []string) ([]image.Pattern, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is empty, so it would match no image", field)
	}
	parsed := make([]image.Pattern, 0, len(list))
	var wrong []error
	for i, s := range list {
		pattern, err := image.ParsePattern(s)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s[%d]: %w", field, i, err))
		}
		parsed = append(parsed, pattern)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return parsed, nil
}
