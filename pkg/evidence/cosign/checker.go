// Package cosign checks image signatures and attestations in cosign's formats, legacy layers
// and Sigstore bundles, made with a key or keyless. It takes bytes and trust material and
// returns a proof, or an error that says why there is none. It verifies log entries,
// certificates and timestamps offline, from the signature itself, and only reaches a network
// through the fetch function of its caller.
//
// It only calls the libraries' functions for single signatures, each with recover: hostile
// evidence can make them panic, and cosign's functions for images panic in separate
// goroutines.
package cosign

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// Options defines which image signatures a Checker accepts.
type Options struct {
	Signers
	// Annotations must all be signed with exactly these values. Message signatures
	// carry no annotations, so they fail if any are set.
	Annotations map[string]string
	// MatchRepository requires that the signed document names the image's host and repository,
	// so that a signature copied from another repository does not count. cosign v3 writes no
	// repository into its bundles: they fail unless the name of a subject of the statement is
	// the repository.
	MatchRepository bool
}

// Checker implements [verify.Checker] for image signatures in cosign's formats. It has
// no mutable state.
type Checker struct {
	*signers
	annotations     map[string]string
	matchRepository bool
}

var _ verify.Checker = (*Checker)(nil)

// New returns a Checker, or an error unless options name signers that can be verified.
func New(options Options) (*Checker, error) {
	trusted, err := newSigners(options.Signers)
	if err != nil {
		return nil, err
	}
	return &Checker{signers: trusted, annotations: maps.Clone(options.Annotations), matchRepository: options.MatchRepository}, nil
}

// Accepts reports whether the layer is a simple-signing payload or a Sigstore
// bundle. It ignores the artifact type, which registries report wrongly.
func (c *Checker) Accepts(s verify.Signature) bool {
	return s.Layer.MediaType == MediaTypeSimpleSigning || isBundle(s.Layer.MediaType)
}

// Check verifies that s is a signature of subject by one of the signers, with the wanted
// repository and annotations. It ignores now: keys do not expire, and certificates must be
// valid at the time for which a log or a timestamp authority vouches.
func (c *Checker) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch,
	_ time.Time) (policy.Proof, error) {
	if err := checkSubject(subject); err != nil {
		return policy.Proof{}, err
	}
	switch {
	case s.Layer.MediaType == MediaTypeSimpleSigning:
		return c.checkLegacy(ctx, subject, s.Layer, fetch)
	case isBundle(s.Layer.MediaType):
		return c.checkBundle(ctx, subject, s.Layer, fetch)
	}
	return policy.Proof{}, malformed("the layer is neither a cosign payload nor a Sigstore bundle")
}

// claims are the statements of a signed document beyond the digest of the image.
type claims struct {
	repository  string // as written; may be empty
	annotations map[string]any
}

// accept is the last step of every check. It requires that one of the verified claims
// has the repository and annotations that the verifier wants.
func (c *Checker) accept(subject verify.Subject, layer digest.Digest, by signer, said ...claims) (policy.Proof, error) {
	err := malformed("the signed document says nothing about the image")
	for _, s := range said {
		if err = c.checkClaims(subject, s); err == nil {
			return by.proof(layer, ""), nil
		}
	}
	return policy.Proof{}, err
}

func (c *Checker) checkClaims(subject verify.Subject, said claims) error {
	if c.matchRepository {
		if err := checkRepository(subject.Reference, said.repository); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.annotations)) {
		if said.annotations[name] != any(c.annotations[name]) {
			return wrongAnnotations(name, c.annotations[name])
		}
	}
	return nil
}

// MediaTypeEnvelope is the media type of a DSSE envelope, in which cosign v2 attaches
// attestations under the tag "sha256-<hex>.att".
const MediaTypeEnvelope = "application/vnd.dsse.envelope.v1+json"

// AttestationOptions defines which attestations an Attestation accepts.
type AttestationOptions struct {
	Signers
	// PredicateType must equal the statement's. It is required: without it, any statement would
	// be accepted.
	PredicateType string
	// Expression is an optional CEL condition over predicate, predicateType, now and
	// signer, which has either keyFingerprint, or issuer, subject and claims.
	Expression string
}

// Attestation implements [verify.Checker] for in-toto attestations, in Sigstore
// bundles and in cosign's legacy envelopes. It has no mutable state.
type Attestation struct {
	*signers
	predicateType string
	expression    *cel.Expression // may be nil
}

var _ verify.Checker = (*Attestation)(nil)

// NewAttestation returns an Attestation, or an error unless options have signers that
// can be verified, a predicate type, and an expression that compiles.
func NewAttestation(options AttestationOptions) (*Attestation, error) {
	if options.PredicateType == "" {
		return nil, errors.New("an attestation verifier needs a predicate type: without one it would accept any statement")
	}
	made := &Attestation{predicateType: options.PredicateType}
	var err error
	if options.Expression != "" {
		made.expression, err = cel.Compile(options.Expression, cel.Variables{
			"predicate": cel.Any, "predicateType": cel.Text, "now": cel.Time, "signer": cel.Any},
			cel.Fields{Of: map[string][]string{"signer": {"keyFingerprint", "issuer", "subject", "claims"}, "signer.claims": claimNames()},
				Nearest: policy.Nearest})
		if err != nil {
			return nil, &FieldError{Field: "expression", Err: err}
		}
	}
	if made.signers, err = newSigners(options.Signers); err != nil {
		return nil, err
	}
	return made, nil
}

// Accepts reports whether the layer is a Sigstore bundle or a DSSE envelope.
func (a *Attestation) Accepts(s verify.Signature) bool {
	return s.Layer.MediaType == MediaTypeEnvelope || isBundle(s.Layer.MediaType)
}

// Check verifies that s is an attestation of subject by one of the signers, with the wanted
// predicate.
func (a *Attestation) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch,
	now time.Time) (policy.Proof, error) {
	if err := checkSubject(subject); err != nil {
		return policy.Proof{}, err
	}
	data, err := read(ctx, fetch, s.Layer, "attestation", s.Layer.Size)
	if err != nil {
		return policy.Proof{}, err
	}
	evidence, err := a.evidence(ctx, s.Layer, data, subject.Descriptor.Digest)
	if err != nil {
		return policy.Proof{}, err
	}
	if err := a.checkStatement(ctx, evidence, now); err != nil {
		return policy.Proof{}, err
	}
	proof := signer{id: evidence.Signer, facts: evidence.Facts}.proof(s.Layer.Digest, a.predicateType)
	return proof.Until(a.until(ctx, evidence, now)), nil
}

// evidence verifies a layer and returns the signed statement and its signer.
func (a *Attestation) evidence(ctx context.Context, layer ocispec.Descriptor, data []byte, want digest.Digest) (Evidence, error) {
	if layer.MediaType != MediaTypeEnvelope {
		return a.VerifyBundle(ctx, data, want)
	}
	if err := verify.Hold(ctx, bundleMemory*int64(len(data))); err != nil {
		return Evidence{}, err
	}
	envelopes, err := envelopesOf(data)
	if err != nil {
		return Evidence{}, refused(fmt.Errorf("the attestation %w", err))
	}
	if a.identities != nil && layer.Annotations[annotationCertificate] == "" {
		return Evidence{}, keyed()
	}
	memory, err := intake.StatementMemory(envelopes[0].GetPayload()) // of all
	if err != nil {
		return Evidence{}, refused(fmt.Errorf("the signed statement %w", err))
	}
	if err := verify.Hold(ctx, memory); err != nil {
		return Evidence{}, err
	}
	var worst error
	for _, envelope := range envelopes {
		found, err := a.evidenceOf(ctx, layer, envelope, want)
		if err == nil || transient(err) {
			return found, err
		}
		// A limit hides evidence, and an expression may require its absence, so no other refusal may replace
		// this one.
		if worst == nil || verify.HasReason(err, policy.ReasonLimitExceeded) {
			worst = err
		}
	}
	return Evidence{}, worst
}

// evidenceOf verifies an envelope with one signature. Its statement is scanned and its memory held.
func (a *Attestation) evidenceOf(ctx context.Context, layer ocispec.Descriptor, envelope *protodsse.Envelope,
	want digest.Digest) (Evidence, error) {
	rebuilt, err := a.rebuild(layer, &protobundle.Bundle{Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: envelope}})
	if err != nil {
		return Evidence{}, refused(err)
	}
	parsed := parsedBundle{Bundle: rebuilt, scanned: true}
	if err := guard(func() error { return parsed.read(a.logged) }); err != nil {
		return Evidence{}, refused(err)
	}
	return a.verifyParsed(ctx, parsed, want)
}

// envelopesOf reads a DSSE envelope (DSSE v1.0.2, "Envelope") as one for each of its signatures: the others do not matter
// to whoever trusts one ("Multi-signature verification").
func envelopesOf(data []byte) ([]*protodsse.Envelope, error) {
	var envelope struct {
		PayloadType string `json:"payloadType"`
		Payload     string `json:"payload"`
		Signatures  []struct {
			Sig string `json:"sig"`
		} `json:"signatures"`
	}
	if err := intake.JSON(data); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return nil, errors.New("is not a DSSE envelope")
	}
	payload, err := decodeBase64(envelope.Payload)
	switch {
	case envelope.PayloadType != bundle.IntotoMediaType:
		return nil, fmt.Errorf("has content of the type %q, not %s", policy.Shown(envelope.PayloadType, maxTypeShown), bundle.IntotoMediaType)
	case err != nil:
		return nil, errors.New("has content that is not base64")
	case len(envelope.Signatures) == 0:
		return nil, errors.New("has no signature")
	case len(envelope.Signatures) > maxEnvelopeSignatures:
		return nil,
			verify.Refuse(policy.ReasonLimitExceeded,
				fmt.Sprintf("the attestation has %d signatures, the limit is %d", len(envelope.Signatures), maxEnvelopeSignatures),
				"attach an attestation with fewer signatures")
	}
	var all []*protodsse.Envelope
	for _, s := range envelope.Signatures {
		signature, err := decodeBase64(s.Sig)
		if err != nil || len(signature) == 0 {
			return nil, errors.New("has a signature that is not base64")
		}
		all = append(all,
			&protodsse.Envelope{PayloadType: envelope.PayloadType, Payload: payload, Signatures: []*protodsse.Signature{{Sig: signature}}})
	}
	return all, nil
}

// decodeBase64 decodes standard and URL-safe base64, with padding or without ("Either standard or URL-safe encoding is
// allowed", DSSE v1.0.2, "Envelope").
func decodeBase64(text string) ([]byte, error) {
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	return encoding.DecodeString(strings.TrimRight(text, "="))
}

// until returns when an expression that reads the time may become false: it evaluates the expression for a later
// moment, and the result holds no longer if it is false then. Nothing more is known.
func (a *Attestation) until(ctx context.Context, evidence Evidence, now time.Time) time.Time {
	switch later := now.Add(expressionHolds); {
	case a.expression == nil || !a.expression.ReadsTime():
		return time.Time{}
	case a.checkStatement(ctx, evidence, later) != nil:
		return now
	default:
		return later
	}
}

// attest says which attestation to create.
func (a *Attestation) attest() string {
	return fmt.Sprintf("make an attestation of the type %s with cosign attest", a.predicateType)
}

// checkStatement refuses evidence without a statement of the wanted predicate type, or
// whose predicate does not satisfy the expression.
func (a *Attestation) checkStatement(ctx context.Context, evidence Evidence, now time.Time) error {
	statement := evidence.Statement
	switch {
	case statement == nil:
		return verify.Refuse(policy.ReasonWrongPredicate, "the bundle is an image signature, not an attestation",
			a.attest())
	case statement.PredicateType != a.predicateType:
		return verify.Refuse(policy.ReasonWrongPredicate,
			fmt.Sprintf("the attestation has the predicate type %q, not %s", Excerpt(statement.PredicateType), a.predicateType),
			a.attest())
	case a.expression == nil:
		return nil
	}
	matched, err := a.expression.Match(func() error { return verify.Step(ctx) }, map[string]any{
		"predicate": statement.Predicate, "predicateType": statement.PredicateType, "now": now, "signer": evidence.Facts})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, cel.ErrLimit):
		return verify.Refuse(policy.ReasonLimitExceeded,
			fmt.Sprintf("the expression cannot be evaluated for the attestation's predicate: %.*s", maxQuote, err.Error()),
			"make spec.attestation.expression simpler, or the predicate smaller")
	case err != nil:
		return verify.Refuse(policy.ReasonPredicate,
			fmt.Sprintf("the expression cannot be evaluated for the attestation's predicate: %.*s", maxQuote, err.Error()),
			"look at the predicate with cosign download attestation, and guard fields that may be missing with has(…) in "+
				"spec.attestation.expression")
	case !matched:
		return verify.Refuse(policy.ReasonPredicate,
			fmt.Sprintf("the attestation of type %s does not meet the expression of the Verifier", a.predicateType),
			"make an attestation that meets spec.attestation.expression of the Verifier; cosign download attestation shows this one")
	}
	return nil
}
