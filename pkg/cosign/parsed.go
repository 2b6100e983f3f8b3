package cosign

import (
	"bytes"
	"encoding/hex"
	"errors"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"
)

var errEnvelope = errors.New("the envelope does not hold one signed in-toto statement")

// parsedBundle is a bundle, taken apart as far as needed to say what it claims.
type parsedBundle struct {
	*bundle.Bundle
	certificate bool   // it names a certificate, not a key
	ed25519     bool   // the certificate's key is of this kind
	hint        string // of the key
	payload     []byte // of the envelope
	// logged is set if the log has the envelope as a hash of what was signed: the
	// bundle as one that signs those bytes.
	logged *bundle.Bundle
	signed []byte

	message   bool // it is a message signature, not an envelope
	digest    []byte
	algorithm protocommon.HashAlgorithm
}

func parseBundle(data []byte) (parsed parsedBundle, err error) {
	err = guard(func() error {
		parsed.Bundle = &bundle.Bundle{}
		if err := parsed.UnmarshalJSON(data); err != nil {
			return err
		}
		return parsed.read()
	})
	return parsed, err
}

// read takes the bundle apart. It may panic.
func (parsed *parsedBundle) read() error {
	content, err := parsed.VerificationContent()
	if err != nil {
		return err
	}
	if _, err := parsed.SignatureContent(); err != nil {
		return err
	}
	// A bundle's envelope has exactly one signature (sigstore_bundle.proto),
	// and only in-toto statements say what image they are about.
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
		parsed.digest = message.GetMessageDigest().GetDigest()
		parsed.algorithm = message.GetMessageDigest().GetAlgorithm()
	}
	if envelope != nil && loggedByHash(parsed.GetVerificationMaterial().GetTlogEntries()) {
		// An envelope's signature is of its pre-authentication encoding (DSSE v1.0.2).
		parsed.signed = dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload())
		parsed.logged, err = bundle.NewBundle(&protobundle.Bundle{MediaType: parsed.GetMediaType(), VerificationMaterial: parsed.GetVerificationMaterial(),
			Content: messageOf(parsed.signed, envelope.GetSignatures()[0].GetSig())})
	}
	return err
}

// loggedByHash reports whether all entries are of Rekor v1 and have no more than the
// hash of what was signed. The client specification ("Bundle content vs. Rekor entry
// kind") allows that for envelopes, and the library does not know it.
func loggedByHash(entries []*protorekor.TransparencyLogEntry) bool {
	for _, entry := range entries {
		if kind := entry.GetKindVersion(); kind.GetKind() != "hashedrekord" || kind.GetVersion() != "0.0.1" {
			return false
		}
	}
	return len(entries) > 0
}

// question returns what to verify, and against what, to know who signed the bundle
// as about want. Of a logged envelope that is the signature only: what its statement
// is about is read by all who ask.
func (parsed parsedBundle) question(want digest.Digest) (*bundle.Bundle, bundleverify.ArtifactPolicyOption, error) {
	if parsed.logged != nil {
		return parsed.logged, bundleverify.WithArtifact(bytes.NewReader(parsed.signed)), nil
	}
	raw, err := hex.DecodeString(want.Encoded())
	return parsed.Bundle, bundleverify.WithArtifactDigest(want.Algorithm().String(), raw), err
}
