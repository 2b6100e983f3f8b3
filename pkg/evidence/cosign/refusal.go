package cosign

import (
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

func malformed(message string) error {
	return verify.Refuse(policy.ReasonMalformed, message, "sign the image again with an unmodified cosign")
}

// refused returns the refusal for unreadable evidence, and returns refusals unchanged.
func refused(err error) error {
	var refusal *verify.Refusal
	switch {
	case errors.As(err, &refusal):
		return err
	case errors.Is(err, errPanic):
		return malformed("the evidence cannot be processed")
	case intake.IsLimit(err):
		return verify.Refuse(policy.ReasonLimitExceeded, err.Error(), "sign the image again with an unmodified cosign")
	}
	return malformed(err.Error())
}

// transient reports whether a retry may help against err.
func transient(err error) bool {
	var refusal *verify.Refusal
	return !errors.As(err, &refusal) && !verify.IsPermanent(err)
}

func limitExceeded(what string, limit int64) error {
	return verify.Refuse(policy.ReasonLimitExceeded, fmt.Sprintf("the %s is larger than the limit of %d bytes", what, limit),
		"make it smaller, or remove it from the repository")
}

func noSignature() error {
	return verify.Refuse(policy.ReasonNoSignature, "the cosign payload has no signature annotation",
		"sign the image again, and copy signatures with cosign copy or another tool that keeps annotations")
}

func tampered(message string) error {
	return verify.Refuse(policy.ReasonTamperedPayload, message, "find out who pushed this signature to the registry, and sign the image "+
		"again only if your own build made it")
}

// wrongDigest only quotes the signature's value if it is a digest.
func wrongDigest(want digest.Digest, signed string) error {
	other := "another image"
	if d, err := digest.Parse(signed); err == nil {
		other = "another image, " + d.String()
	}
	return verify.Refuse(policy.ReasonWrongDigest, fmt.Sprintf("the signature is for %s, not for %s", other, want),
		"sign this image by its digest: signatures of other images or platforms do not carry over")
}

// checkRepository refuses a signature whose signed document does not name ref's
// repository, both normalised.
func checkRepository(ref image.Reference, signed string) error {
	named, err := image.Parse(signed)
	switch {
	case signed == "":
		return verify.Refuse(policy.ReasonWrongRepository,
			fmt.Sprintf("the signature names no repository, so it is not proven to be for %s", ref.Name()),
			"sign with cosign's legacy format (--new-bundle-format=false), which names the repository, or drop matchRepository from the Verifier")
	case err != nil:
		return verify.Refuse(policy.ReasonWrongRepository,
			fmt.Sprintf("the signature names a repository that is not an image reference, want %s", ref.Name()),
			"sign the image again where it is used")
	case named.Name() != ref.Name():
		return verify.Refuse(policy.ReasonWrongRepository,
			fmt.Sprintf("the signature is for repository %s, not for %s", named.Name(), ref.Name()),
			"sign the image again where it is used, or drop matchRepository from the Verifier")
	}
	return nil
}

func wrongAnnotations(name, value string) error {
	return verify.Refuse(policy.ReasonWrongAnnotations, fmt.Sprintf("the signature does not carry the annotation %.100s=%.100s", name, value),
		"sign the image again with this annotation")
}

func wrongPredicate() error {
	return verify.Refuse(policy.ReasonWrongPredicate, "the bundle is an attestation, which does not count as a signature of the image",
		"sign the image itself with cosign sign")
}

func keyless() error {
	return verify.Refuse(policy.ReasonKeyless, "the signature is made with a certificate, and the Verifier wants one of its keys",
		"sign with one of the Verifier's keys; only if you know the signer, use a Verifier with keyless")
}

func keyed() error {
	return verify.Refuse(policy.ReasonKeyed, "the signature is made with a key, and the Verifier wants an identity",
		"only if you know the key, use a Verifier with keys")
}

func unsupported() error {
	return verify.Refuse(policy.ReasonUnsupported, "the bundle signs the image's bytes in a way that cannot be checked from its sha256 digest",
		"sign the image with cosign sign")
}

// FieldError names the invalid field of [Options], as resources spell it: its path below the
// field of the verifier's type.
type FieldError struct {
	Field string
	Err   error
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// at prefixes an error, which may name a nested field, with a field.
func at(field string, err error) error {
	var below *FieldError
	if errors.As(err, &below) {
		return &FieldError{Field: field + "." + below.Field, Err: below.Err}
	}
	return &FieldError{Field: field, Err: err}
}

// errPanic replaces the panic of a library. Evidence that causes one is malformed.
var errPanic = errors.New("the library gave up")

// guard runs a library call and turns a panic into errPanic.
func guard(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return call()
}
