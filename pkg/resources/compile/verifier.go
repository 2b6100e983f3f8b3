package compile

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// verifier is a compiled Verifier. Its fingerprint covers the trust material.
type verifier struct {
	*verify.Verifier
	fingerprint string
	// uses lists the trust stores that it names.
	uses []policy.ObjectRef
	// signers lists the fingerprints of the trusted keys; nil means that the number of
	// signers is unbounded.
	signers []string
	// holds lists the fingerprints of the keys in its own spec.
	holds []string
}

// compileVerifier compiles a Verifier, whose trust stores are in stores. One with an error denies.
func compileVerifier(e entry[v1beta1.VerifierSpec], stores trustStores, outside Outside) (verifier, error) {
	v := verifier{Verifier: &verify.Verifier{Source: e.source, Type: string(e.spec.Type)}}
	used, err := v.read(e, stores, outside)
	if err != nil {
		v.Checker, v.signers, v.holds, used = nil, nil, nil, nil
		v.Broken = unusable(e.source, err)
	}
	v.fingerprint = fingerprint(e.source, e.spec, fmt.Appendf(nil, "%q", used), err)
	return v, err
}

// read fills v from its spec, and returns the fingerprints of the trust stores that it
// uses.
func (v *verifier) read(e entry[v1beta1.VerifierSpec], stores trustStores, outside Outside) ([]string, error) {
	if e.err() != nil {
		return nil, e.err()
	}
	// Patterns first, so that a verifier that is broken otherwise denies only its images.
	var wrong, err error
	v.Images, wrong = patternsOrAll("spec.images", e.spec.Images)
	v.uses = trustStoresOf(stores.owner(), e.spec)
	spec := e.spec
	types := []struct {
		name  v1beta1.VerifierType
		field string
		set   bool
	}{{v1beta1.VerifierTypeCosign, "cosign", spec.Cosign != nil}, {v1beta1.VerifierTypeNotation, "notation", spec.Notation != nil}, {v1beta1.VerifierTypeAttestation, "attestation", spec.Attestation != nil}}
	known := false
	for _, t := range types {
		if known = known || t.name == spec.Type; (t.name == spec.Type) != t.set {
			err = cmp.Or(err, fmt.Errorf("spec.type %s needs spec.%s, and no other type may have it", t.name, t.field))
		}
	}
	if !known {
		err = fmt.Errorf("spec.type is %q, it must be one of Cosign, Notation, Attestation", spec.Type)
	}
	if err != nil {
		return nil, errors.Join(wrong, err)
	}
	v.Command = command(spec)
	var used []string
	switch spec.Type {
	case v1beta1.VerifierTypeCosign:
		v.Checker, v.signers, used, err = cosignChecker(e.source, *spec.Cosign, stores)
	case v1beta1.VerifierTypeNotation:
		v.Checker, used, err = notationChecker(e.source.String(), *spec.Notation, stores, outside)
	case v1beta1.VerifierTypeAttestation:
		v.Checker, v.signers, used, err = attestationChecker(e.source, *spec.Attestation, stores)
	}
	if inlineKeys(spec) != "" { // then it trusts no others
		v.holds = v.signers
	}
	return used, errors.Join(wrong, err)
}

// trustStoresOf returns the trust stores that a verifier names, even missing ones.
func trustStoresOf(owner verify.Namespace, spec v1beta1.VerifierSpec) []policy.ObjectRef {
	return mapSlice(resource.FieldsOfVerifier(spec), func(f resource.Field) policy.ObjectRef {
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
