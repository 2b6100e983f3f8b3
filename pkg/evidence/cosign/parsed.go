package cosign

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

var (
	errBundle = errors.New("the bundle is not a well-formed Sigstore bundle of version 0.1 to 0.3")
)

// parsedBundle is a bundle with its unverified claims.
type parsedBundle struct {
	*bundle.Bundle
	certificate bool   // signed with a certificate, not a key
	ed25519     bool   // the certificate's key is an Ed25519 key
	hint        string // names the key
	payload     []byte // of the envelope
	scanned     bool   // the payload, before
	memory      int64  // memory of the payload as a tree of values, 0 if it was already scanned
	signature   []byte
	signed      []byte // the DSSE PAE of an envelope, nil for a message
	// byHash is the bundle as a message signature over signed. It is only set if
	// signatures must be logged and every entry is a hashedrekord.
	byHash *bundle.Bundle

	message   bool   // a message signature, not an envelope
	digest    []byte // of the message
	algorithm protocommon.HashAlgorithm
}

// needs returns the vouchers that count for the signers. Others prove nothing, and can only
// do harm.
func (s *signers) needs() intake.Vouchers {
	return intake.Vouchers{Log: s.logged, Time: s.identities != nil}
}

// parse parses a bundle.
func (s *signers) parse(data []byte) (parsed parsedBundle, err error) {
	err = guard(func() error {
		read, err := intake.Bundle(data, s.needs())
		if err != nil {
			return fmt.Errorf("the bundle %w", err)
		}
		if parsed.Bundle, err = bundle.NewBundle(read); err != nil {
			return errBundle
		}
		return parsed.read(s.logged)
	})
	return parsed, err
}

// read fills in the claims of the bundle. logged says whether signatures must be in a log. It
// may panic.
func (parsed *parsedBundle) read(logged bool) error {
	content, err := parsed.VerificationContent()
	if err != nil {
		return errBundle
	}
	// "During verification a client MUST reject an envelope if the number of signatures
	// is not equal to one" (sigstore_bundle.proto). Only in-toto statements say what
	// image they are about.
	envelope := parsed.GetDsseEnvelope()
	switch {
	case envelope != nil && envelope.GetPayloadType() != bundle.IntotoMediaType:
		return fmt.Errorf("the bundle's envelope has content of the type %q, not %s", policy.Shown(envelope.GetPayloadType(), maxTypeShown),
			bundle.IntotoMediaType)
	case envelope != nil && len(envelope.GetSignatures()) != 1:
		return fmt.Errorf("the bundle's envelope has %d signatures, it must have one", len(envelope.GetSignatures()))
	}
	parsed.certificate = content.PublicKey() == nil
	parsed.ed25519 = isEd25519(content)
	parsed.hint = parsed.GetVerificationMaterial().GetPublicKey().GetHint()
	parsed.payload = envelope.GetPayload()
	if message := parsed.GetMessageSignature(); message != nil {
		parsed.message = true
		parsed.signature = message.GetSignature()
		parsed.digest = message.GetMessageDigest().GetDigest()
		parsed.algorithm = message.GetMessageDigest().GetAlgorithm()
	}
	if envelope == nil {
		return nil
	}
	if !parsed.scanned {
		if parsed.memory, err = intake.StatementMemory(parsed.payload); err != nil {
			return fmt.Errorf("the signed statement %w", err)
		}
	}
	// SIGNATURE = Sign(PAE(UTF8(PAYLOAD_TYPE), SERIALIZED_BODY)) (DSSE protocol, "Signature
	// Definition").
	parsed.signature, parsed.signed = envelope.GetSignatures()[0].GetSig(), dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload())
	if !logged {
		return nil
	}
	hash := loggedHash(parsed.GetVerificationMaterial().GetTlogEntries())
	if hash == 0 {
		return nil
	}
	parsed.byHash, err = bundle.NewBundle(&protobundle.Bundle{MediaType: parsed.GetMediaType(),
		VerificationMaterial: parsed.GetVerificationMaterial(),
		Content:              messageOf(parsed.signed, envelope.GetSignatures()[0].GetSig(), hash)})
	return err
}

// loggedHash returns the hash algorithm of the log entries if all of them are of Rekor v1's
// kind hashedrekord, which holds only a hash of the signed bytes; else zero. The client
// specification ("Bundle content vs. Rekor entry kind") allows that kind for envelopes, but
// the library does not support it. It does not verify entries: the library does.
func loggedHash(entries []*protorekor.TransparencyLogEntry) (hash crypto.Hash) {
	for _, entry := range entries {
		var body struct {
			Kind       string
			APIVersion string
			Spec       struct {
				Data struct{ Hash struct{ Algorithm string } }
			}
		}
		if json.Unmarshal(entry.GetCanonicalizedBody(), &body) != nil || body.Kind != "hashedrekord" || body.APIVersion != "0.0.1" {
			return 0
		}
		switch body.Spec.Data.Hash.Algorithm {
		case "sha256":
			hash = crypto.SHA256
		case "sha384":
			hash = crypto.SHA384
		case "sha512":
			hash = crypto.SHA512
		default:
			return 0
		}
	}
	return hash
}

// target returns the bundle and the artifact to verify with the library, so that the bundle
// counts as a signature of want. For an envelope, this only covers the signature: the caller
// checks that the statement is about want. The library would refuse all statements with a digest
// that is not hexadecimal, such as the digest of a Go module.
func (parsed parsedBundle) target(want digest.Digest) (*bundle.Bundle, bundleverify.ArtifactPolicyOption, error) {
	switch {
	case parsed.byHash != nil:
		return parsed.byHash, bundleverify.WithArtifact(bytes.NewReader(parsed.signed)), nil
	case !parsed.message:
		return parsed.Bundle, bundleverify.WithoutArtifactUnsafe(), nil
	}
	raw, err := hex.DecodeString(want.Encoded())
	return parsed.Bundle, bundleverify.WithArtifactDigest(want.Algorithm().String(), raw), err
}

// Annotations of a legacy signature's layer, apart from the signature itself.
const (
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationBundle      = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// legacyHint is the key hint of a rebuilt bundle. Legacy signatures do not name their
// key, so all keys are tried.
const legacyHint = "legacy"

var errAnnotations = errors.New("the signature's annotations make no bundle")

// rekorBundle is a Rekor entry as cosign stores it.
type rekorBundle struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           string `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

// rebuild completes a Sigstore bundle v0.1, which already has its content, with the annotations
// of a legacy signature. So one library checks certificates, log entries and timestamps of both
// formats: cosign v2 itself only checks the leaf against the time of signing (CVE-2026-24122).
//
// It omits the log entry and the timestamp if the signers do not need them.
func (s *signers) rebuild(layer ocispec.Descriptor, made *protobundle.Bundle) (*bundle.Bundle, error) {
	needs := s.needs()
	material := &protobundle.VerificationMaterial{}
	made.MediaType, made.VerificationMaterial = "application/vnd.dev.sigstore.bundle+json;version=0.1", material
	if s.identities == nil {
		material.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: legacyHint}}
	} else {
		certificate, err := leafOf(layer.Annotations[annotationCertificate])
		if err != nil {
			return nil, err
		}
		material.Content = &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
			Certificates: []*protocommon.X509Certificate{{RawBytes: certificate}}}}
	}
	if text := layer.Annotations[annotationBundle]; text != "" && needs.Log {
		entry, err := logEntry(text)
		if err != nil {
			return nil, err
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	if text := layer.Annotations[annotationTimestamp]; text != "" && needs.Time {
		timestamp, err := timestampOf(text)
		if err != nil {
			return nil, err
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamp}}}
	}
	var rebuilt *bundle.Bundle
	err := guard(func() (err error) {
		if err = intake.Material(material, needs); err != nil {
			return fmt.Errorf("the signature %w", err)
		}
		if rebuilt, err = bundle.NewBundle(made); err != nil {
			return errAnnotations
		}
		return nil
	})
	return rebuilt, err
}

// messageOf returns the content of a bundle that signs the SHA-2 hash of a payload.
func messageOf(payload, signature []byte, hash crypto.Hash) *protobundle.Bundle_MessageSignature {
	algorithm := protocommon.HashAlgorithm_SHA2_256
	switch hash {
	case crypto.SHA384:
		algorithm = protocommon.HashAlgorithm_SHA2_384
	case crypto.SHA512:
		algorithm = protocommon.HashAlgorithm_SHA2_512
	}
	sum := hash.New()
	sum.Write(payload)
	return &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: algorithm, Digest: sum.Sum(nil)}, Signature: signature}}
}

// leafOf returns the DER of the one certificate in PEM text.
func leafOf(text string) ([]byte, error) {
	if len(text) > maxAnnotation {
		return nil, limitExceeded("certificate annotation", maxAnnotation)
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("the certificate annotation has no certificate")
	}
	return block.Bytes, nil
}

// readAnnotation reads an annotation with a JSON document.
func readAnnotation(name, text string, into any) error {
	if len(text) > maxAnnotation {
		return limitExceeded(name+" annotation", maxAnnotation)
	}
	if err := intake.JSON([]byte(text)); err != nil {
		return fmt.Errorf("the %s annotation %w", name, err)
	}
	if json.Unmarshal([]byte(text), into) != nil {
		return fmt.Errorf("the %s annotation is malformed", name)
	}
	return nil
}

// logEntry reads the annotation strictly: a missing field must not become a meaningful
// zero.
func logEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	wrong := errors.New("the log entry annotation is malformed")
	var stored rekorBundle
	if err := readAnnotation("log entry", text, &stored); err != nil {
		return nil, err
	}
	body, err := base64.StdEncoding.DecodeString(stored.Payload.Body)
	if err != nil || len(body) == 0 {
		return nil, wrong
	}
	if err := intake.JSON(body); err != nil {
		return nil, fmt.Errorf("the log entry %w", err)
	}
	log, err := hex.DecodeString(stored.Payload.LogID)
	if err != nil || len(log) == 0 || len(stored.SignedEntryTimestamp) == 0 || stored.Payload.IntegratedTime <= 0 ||
		stored.Payload.LogIndex < 0 {
		return nil, wrong
	}
	var kind struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(body, &kind); err != nil || kind.Kind == "" || kind.APIVersion == "" {
		return nil, wrong
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex: stored.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: log}, IntegratedTime: stored.Payload.IntegratedTime,
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion},
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: stored.SignedEntryTimestamp},
		CanonicalizedBody: body,
	}, nil
}

func timestampOf(text string) ([]byte, error) {
	var stored struct{ SignedRFC3161Timestamp []byte }
	if err := readAnnotation("timestamp", text, &stored); err != nil {
		return nil, err
	}
	if len(stored.SignedRFC3161Timestamp) == 0 {
		return nil, errors.New("the timestamp annotation is malformed")
	}
	return stored.SignedRFC3161Timestamp, nil
}
