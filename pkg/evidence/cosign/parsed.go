package cosign

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

var (
	errBundle   = errors.New("the bundle is not a well-formed Sigstore bundle of version 0.1 to 0.3")
	errEnvelope = errors.New("the bundle's envelope does not hold one signed in-toto statement")
)

// parsedBundle is a bundle with its unverified claims.
type parsedBundle struct {
	*bundle.Bundle
	certificate bool   // signed with a certificate, not a key
	ed25519     bool   // the certificate's key is an Ed25519 key
	hint        string // names the key
	payload     []byte // of the envelope
	signature   []byte
	signed      []byte // the DSSE PAE of an envelope, nil for a message
	// byHash is the bundle as a message signature over signed. It is only set if
	// signatures must be logged and every entry is a hashedrekord.
	byHash *bundle.Bundle

	message   bool   // a message signature, not an envelope
	digest    []byte // of the message
	algorithm protocommon.HashAlgorithm
}

// needs says which vouchers count for the signers. Others prove nothing, and can only do
// harm.
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

// read fills in the claims of the bundle. logged says whether signatures must be in a log.
// It may panic.
func (parsed *parsedBundle) read(logged bool) error {
	content, err := parsed.VerificationContent()
	if err != nil {
		return errBundle
	}
	// "During verification a client MUST reject an envelope if the number of signatures
	// is not equal to one" (sigstore_bundle.proto). Only in-toto statements say what
	// image they are about.
	envelope := parsed.GetDsseEnvelope()
	if envelope != nil && (len(envelope.GetSignatures()) != 1 || envelope.GetPayloadType() != bundle.IntotoMediaType) {
		return errEnvelope
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
	if err := intake.Statement(parsed.payload); err != nil {
		return fmt.Errorf("the signed statement %w", err)
	}
	// SIGNATURE = Sign(PAE(UTF8(PAYLOAD_TYPE), SERIALIZED_BODY)) (DSSE protocol,
	// "Signature Definition").
	parsed.signature, parsed.signed = envelope.GetSignatures()[0].GetSig(), dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload())
	if !logged {
		return nil
	}
	hash := loggedHash(parsed.GetVerificationMaterial().GetTlogEntries())
	if hash == 0 {
		return nil
	}
	parsed.byHash, err = bundle.NewBundle(&protobundle.Bundle{MediaType: parsed.GetMediaType(), VerificationMaterial: parsed.GetVerificationMaterial(),
		Content: messageOf(parsed.signed, envelope.GetSignatures()[0].GetSig(), hash)})
	return err
}

// loggedHash returns the hash algorithm of the log entries if all of them are of Rekor
// v1's kind hashedrekord, which holds only a hash of the signed bytes; else zero. The
// client specification ("Bundle content vs. Rekor entry kind") allows that kind for
// envelopes, but the library does not support it. Entries are not verified here: the
// library does that.
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

// target returns the bundle and the artifact that the library has to verify so that the
// bundle counts as a signature of want. With byHash that only covers the signature: the
// caller checks that the statement is about want.
func (parsed parsedBundle) target(want digest.Digest) (*bundle.Bundle, bundleverify.ArtifactPolicyOption, error) {
	if parsed.byHash != nil {
		return parsed.byHash, bundleverify.WithArtifact(bytes.NewReader(parsed.signed)), nil
	}
	raw, err := hex.DecodeString(want.Encoded())
	return parsed.Bundle, bundleverify.WithArtifactDigest(want.Algorithm().String(), raw), err
}
