package cosign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/signature/options"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// cosign writes cosignDockerHub for dockerHub into payloads.
const dockerHub, cosignDockerHub = "docker.io", "index.docker.io"

// simpleSigning is the content of a simple-signing payload (containers-signature(5)) as
// cosign writes it.
type simpleSigning struct {
	digest    string
	reference string
	optional  map[string]any
}

// parsePayload reads a simple-signing payload of cosign's type. "consumers MUST reject
// the signature if the `critical` object, or any of its subobjects, contain any member
// or data value which is unrecognized, unsupported, invalid, or in any other way
// unexpected" (containers-signature(5), "JSON processing and forward compatibility").
func parsePayload(data []byte) (simpleSigning, error) {
	if err := intake.Payload(data); err != nil {
		return simpleSigning{}, err
	}
	document, err := intake.ParseObject(data, maxDepth)
	if err != nil {
		return simpleSigning{}, err
	}
	critical, _ := document["critical"].(map[string]any)
	identity, _ := critical["identity"].(map[string]any)
	signed, _ := critical["image"].(map[string]any)
	digest, hasDigest := signed["docker-manifest-digest"].(string)
	reference, hasReference := identity["docker-reference"].(string)
	optional, isObject := document["optional"].(map[string]any)
	switch {
	case !hasDigest || !hasReference || !only(document, "critical", "optional") || !only(critical, "identity", "image", "type") ||
		!only(identity, "docker-reference") || !only(signed, "docker-manifest-digest"):
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	case critical["type"] != payload.CosignSignatureType:
		return simpleSigning{}, fmt.Errorf("is not of the type %q", payload.CosignSignatureType)
	case !isObject && document["optional"] != nil:
		return simpleSigning{}, errors.New(`has an "optional" that is not an object`)
	}
	return simpleSigning{digest, reference, optional}, nil
}

// rebuildPayload returns the payload that cosign signs for ref by default, if it has the
// wanted digest. This saves a fetch in the most common case.
func rebuildPayload(ref image.Reference, want digest.Digest) ([]byte, bool) {
	host := ref.Host
	if host == dockerHub {
		host = cosignDockerHub
	}
	built, err := json.Marshal(payload.SimpleContainerImage{Critical: payload.Critical{
		Identity: payload.Identity{DockerReference: host + "/" + ref.Repository},
		Image:    payload.Image{DockerManifestDigest: ref.Digest.String()},
		Type:     payload.CosignSignatureType,
	}})
	if err != nil || digest.FromBytes(built) != want {
		return nil, false
	}
	return built, true
}

// only reports whether object has no other names.
func only(object map[string]any, names ...string) bool {
	known := 0
	for _, name := range names {
		if _, ok := object[name]; ok {
			known++
		}
	}
	return known == len(object)
}

// PredicateTypeSignature is the predicate type of an image signature in a bundle.
// Statements of any other type are attestations.
const PredicateTypeSignature = "https://sigstore.dev/cosign/sign/v1"

var (
	errPredicate = errors.New("is not an image signature")
	errTooLarge  = errors.New("is too large")
)

// subjectClaims are the claims about one subject of the statement of an image signature.
type subjectClaims struct {
	digest string // "sha256:…", or empty
	claims
}

// parseStatement reads the subjects of an image signature's statement. Of other statements,
// which may be large, it only reads the type.
func parseStatement(data []byte) ([]subjectClaims, error) {
	var kind struct {
		PredicateType string `json:"predicateType"`
	}
	switch err := json.Unmarshal(data, &kind); {
	case err != nil:
		return nil, errors.New("is not an in-toto statement")
	case kind.PredicateType != PredicateTypeSignature:
		return nil, errPredicate
	case len(data) > maxPayload:
		return nil, errTooLarge
	}
	if err := intake.Payload(data); err != nil {
		return nil, err
	}
	document, err := intake.ParseObject(data, maxDepth)
	if err != nil {
		return nil, err
	}
	list, isList := document["subject"].([]any)
	switch {
	case !intake.IsStatement(document):
		return nil, errors.New("is not an in-toto statement of version 0.1 or 1")
	case document["predicateType"] != PredicateTypeSignature: // encoding/json ignores the case of names
		return nil, errPredicate
	case !isList:
		return nil, errors.New("has no subjects")
	}
	subjects := make([]subjectClaims, len(list))
	for i, entry := range list {
		if subjects[i], err = parseSubject(entry); err != nil {
			return nil, err
		}
	}
	return subjects, nil
}

func parseSubject(entry any) (subjectClaims, error) {
	object, digests, err := intake.ReadSubject(entry)
	if err != nil {
		return subjectClaims{}, err
	}
	s := subjectClaims{}
	if sum, ok := digests["sha256"].(string); ok {
		if _, err := hex.DecodeString(sum); err != nil {
			return subjectClaims{}, errors.New("has a subject with a damaged digest")
		}
		s.digest = digest.SHA256.String() + ":" + sum
	}
	s.repository, _ = object["name"].(string)
	s.annotations, _ = object["annotations"].(map[string]any)
	return s, nil
}

var errUnknownContent = errors.New("the signed content is not known in this form")

// signedContent is the content that a signature covers, hashed once for all keys.
type signedContent struct {
	message []byte // nil if only the digest is known
	sums    map[crypto.Hash][]byte
}

func contentOf(message []byte) signedContent {
	return signedContent{message: message, sums: map[crypto.Hash][]byte{}}
}

// contentOfDigest is content with only its SHA-256 digest known.
func contentOfDigest(known digest.Digest) (signedContent, error) {
	sum, err := hex.DecodeString(known.Encoded())
	return signedContent{sums: map[crypto.Hash][]byte{crypto.SHA256: sum}}, err
}

// sum returns the hash of the content, or nil if it is not known.
func (c signedContent) sum(hash crypto.Hash) []byte {
	if sum, ok := c.sums[hash]; ok || c.message == nil {
		return sum
	}
	hasher := hash.New()
	hasher.Write(c.message)
	c.sums[hash] = hasher.Sum(nil)
	return c.sums[hash]
}

// verifies reports whether the key made signature over content with this algorithm. It
// selects the key for the library, which then verifies everything once: trying many keys with
// the library would copy and parse the evidence for each.
func (a algorithm) verifies(content signedContent, signature []byte) bool {
	return guard(func() error {
		if a.hash == 0 {
			if content.message == nil || !ed25519.Verify(a.plain, content.message, signature) { // without a copy of the message
				return errUnknownContent
			}
			return nil
		}
		sum := content.sum(a.hash)
		if sum == nil {
			return errUnknownContent
		}
		return a.verifier.VerifySignature(bytes.NewReader(signature), bytes.NewReader(nil), options.WithDigest(sum))
	}) == nil
}

// choose is match for a signature without a log entry. It does not try a single choice, since
// the library's verification costs no more.
func (s *signers) choose(ctx context.Context, message, signature []byte) (trustedKey, algorithm, bool, error) {
	if len(s.keys) == 1 && len(s.keys[0].algorithms) == 1 {
		return s.keys[0], s.keys[0].algorithms[0], true, verify.Step(ctx)
	}
	return s.match(ctx, contentOf(message), signature)
}

// match returns the key that made signature over content, and the algorithm, or false.
func (s *signers) match(ctx context.Context, content signedContent, signature []byte) (trustedKey, algorithm, bool, error) {
	for _, key := range s.keys {
		for _, algorithm := range key.algorithms {
			if err := verify.Step(ctx); err != nil {
				return trustedKey{}, algorithm, false, err
			}
			if algorithm.verifies(content, signature) {
				return key, algorithm, true, nil
			}
		}
	}
	return trustedKey{}, algorithm{}, false, nil
}
