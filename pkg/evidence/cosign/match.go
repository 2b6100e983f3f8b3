package cosign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"errors"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

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
