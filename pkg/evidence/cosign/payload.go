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
	"github.com/landwaiter/landwaiter/pkg/formats/intoto"
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
	document, err := intoto.ParseObject(data, maxDepth)
	if err != nil {
		return simpleSigning{}, err
	}
	critical, ok := document["critical"].(map[string]any)
	if !ok || !only(document, "critical", "optional") || !only(critical, "identity", "image", "type") {
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	}
	if critical["type"] != payload.CosignSignatureType {
		return simpleSigning{}, fmt.Errorf("is not of the type %q", payload.CosignSignatureType)
	}
	identity, identityOK := critical["identity"].(map[string]any)
	signed, signedOK := critical["image"].(map[string]any)
	if !identityOK || !signedOK || !only(identity, "docker-reference") || !only(signed, "docker-manifest-digest") {
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	}
	p := simpleSigning{}
	var digestOK, referenceOK bool
	p.digest, digestOK = signed["docker-manifest-digest"].(string)
	p.reference, referenceOK = identity["docker-reference"].(string)
	if !digestOK || !referenceOK {
		return simpleSigning{}, errors.New(`has unknown or missing parts in "critical"`)
	}
	optional, present := document["optional"]
	if p.optional, ok = optional.(map[string]any); !ok && present && optional != nil {
		return simpleSigning{}, errors.New(`has an "optional" that is not an object`)
	}
	return p, nil
}

// rebuildPayload returns the payload that cosign signs for ref by default, if it has the
// wanted digest. It saves a fetch in the most common case.
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

// statement is the in-toto statement of an image signature, with the claims about each
// of its subjects.
type statement struct {
	subjects []subjectClaims
}

type subjectClaims struct {
	digest string // "sha256:…", or empty
	claims
}

// parseStatement reads the statement of an image signature. It only reads the type of
// other statements, which may be large.
func parseStatement(data []byte) (statement, error) {
	var kind struct {
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return statement{}, errors.New("is not an in-toto statement")
	}
	if kind.PredicateType != PredicateTypeSignature {
		return statement{}, errPredicate
	}
	if len(data) > maxPayload {
		return statement{}, errTooLarge
	}
	if err := intake.Payload(data); err != nil {
		return statement{}, err
	}
	document, err := intoto.ParseObject(data, maxDepth)
	if err != nil {
		return statement{}, err
	}
	if !intoto.IsStatement(document) {
		return statement{}, errors.New("is not an in-toto statement of version 0.1 or 1")
	}
	// Checked again on the strict parse: encoding/json ignores the case of names.
	if document["predicateType"] != PredicateTypeSignature {
		return statement{}, errPredicate
	}
	list, ok := document["subject"].([]any)
	if !ok {
		return statement{}, errors.New("has no subjects")
	}
	s := statement{}
	for _, entry := range list {
		subject, err := parseSubject(entry)
		if err != nil {
			return statement{}, err
		}
		s.subjects = append(s.subjects, subject)
	}
	return s, nil
}

func parseSubject(entry any) (subjectClaims, error) {
	object, digests, err := intoto.ReadSubject(entry)
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

// about returns the claims of every subject with the digest d.
func (s statement) about(d digest.Digest) []claims {
	var said []claims
	for _, subject := range s.subjects {
		if subject.digest == d.String() {
			said = append(said, subject.claims)
		}
	}
	return said
}

// digests returns the digests of the subjects, for messages.
func (s statement) digests() []string {
	var all []string
	for _, subject := range s.subjects {
		all = append(all, subject.digest)
	}
	return all
}

var errUnknownContent = errors.New("the signed content is not known in this form")

// signedContent is what a signature has to verify, hashed once for all keys.
type signedContent struct {
	message []byte // nil if only the digest is known
	sums    map[crypto.Hash][]byte
}

func contentOf(message []byte) signedContent {
	return signedContent{message: message, sums: map[crypto.Hash][]byte{}}
}

// contentOfDigest is content of which only the SHA-256 digest is known.
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
// selects the key for the library, which then verifies everything, once: with each of many
// keys it would copy and parse the evidence again.
func (a algorithm) verifies(content signedContent, signature []byte) bool {
	return guard(func() error {
		if a.hash == 0 {
			if content.message == nil {
				return errUnknownContent
			}
			if !ed25519.Verify(a.plain, content.message, signature) { // without a copy of the message
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
