package compile

import (
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// verifier is a compiled verifier; its fingerprint covers the trust material.
type verifier struct {
	*verify.Verifier
	fingerprint string
}

func compileVerifier(r entry[v1alpha1.VerifierSpec], stores trustStores, outside Outside) (verifier, error) {
	v := &verify.Verifier{Source: r.source, Type: typeOf(r.spec)}
	err := r.broken
	if err == nil {
		// Patterns first: a verifier that is broken otherwise still denies only
		// the images that it is about.
		v.Images, err = patterns("spec.images", r.spec.Images, true)
	}
	var used []string
	if err == nil {
		v.Checker, used, err = checkerOf(r, stores, outside)
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
func checkerOf(r entry[v1alpha1.VerifierSpec], stores trustStores, outside Outside) (verify.Checker, []string, error) {
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
		return notationChecker(r.source.String(), *r.spec.Notation, stores, outside)
	}
	return attestationChecker(*r.spec.Attestation, stores)
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

func wrap(field string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
