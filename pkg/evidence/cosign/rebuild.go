package cosign

import (
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

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

// rebuild makes a Sigstore bundle v0.1 from a legacy signature and its annotations, so
// that one library judges certificates, log entries and timestamps of both formats:
// cosign v2 itself checks only the leaf against the time of signing (CVE-2026-24122).
//
// It leaves out the log entry and the timestamp that the signers do not need.
func (s *signers) rebuild(layer ocispec.Descriptor, content any) (*bundle.Bundle, error) {
	needs := s.needs()
	material := &protobundle.VerificationMaterial{}
	made := &protobundle.Bundle{MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1", VerificationMaterial: material}
	switch content := content.(type) {
	case *protobundle.Bundle_MessageSignature:
		made.Content = content
	case *protobundle.Bundle_DsseEnvelope:
		made.Content = content
	default:
		return nil, fmt.Errorf("a bundle cannot hold a %T", content)
	}
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

// logEntry reads the annotation strictly: a missing field must not become a meaningful
// zero.
func logEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	wrong := errors.New("the log entry annotation is malformed")
	if len(text) > maxAnnotation {
		return nil, limitExceeded("log entry annotation", maxAnnotation)
	}
	if err := intake.JSON([]byte(text)); err != nil {
		return nil, fmt.Errorf("the log entry annotation %w", err)
	}
	var stored rekorBundle
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, wrong
	}
	body, err := base64.StdEncoding.DecodeString(stored.Payload.Body)
	if err != nil || len(body) == 0 {
		return nil, wrong
	}
	if err := intake.JSON(body); err != nil {
		return nil, fmt.Errorf("the log entry %w", err)
	}
	log, err := hex.DecodeString(stored.Payload.LogID)
	if err != nil || len(log) == 0 || len(stored.SignedEntryTimestamp) == 0 || stored.Payload.IntegratedTime <= 0 || stored.Payload.LogIndex < 0 {
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
	if len(text) > maxAnnotation {
		return nil, limitExceeded("timestamp annotation", maxAnnotation)
	}
	if err := intake.JSON([]byte(text)); err != nil {
		return nil, fmt.Errorf("the timestamp annotation %w", err)
	}
	var stored struct{ SignedRFC3161Timestamp []byte }
	if err := json.Unmarshal([]byte(text), &stored); err != nil || len(stored.SignedRFC3161Timestamp) == 0 {
		return nil, errors.New("the timestamp annotation is malformed")
	}
	return stored.SignedRFC3161Timestamp, nil
}
