package cosign

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Key is one trusted public key.
type Key struct {
	// Name says in messages where the key comes from, such as "TrustStore
	// team-a/team-keys".
	Name string
	// Public is an *ecdsa.PublicKey (P-256, P-384, P-521), an ed25519.PublicKey,
	// or an *rsa.PublicKey of at least 2048 bits (PKCS #1 v1.5).
	Public crypto.PublicKey
	// Fingerprint identifies the signer in findings.
	Fingerprint string
	// Hash is what the signer hashes the signed bytes with: SHA-256, SHA-384 or
	// SHA-512. Zero stands for what cosign uses: SHA-256, and for ECDSA P-384
	// and P-521 also the hash of the curve's strength. Ed25519 keys ignore it.
	Hash crypto.Hash
}

// Signers says whose signatures count: those by keys, or those by identities that a
// Sigstore root certifies. Image signatures and attestations share it.
type Signers struct {
	// Keys are the trusted keys, 1 to 64; any one of them suffices.
	Keys []Key
	// Log is where signatures by keys must be logged: a Sigstore root with at least one
	// transparency log. Identities have the logs of their own root.
	Log root.TrustedMaterial
	// Keyless trusts identities instead of keys. Exactly one of both is set.
	Keyless *Keyless
	// InsecureIgnoreLog accepts signatures that are in no transparency log. With keys it
	// stands in for Log. With identities a timestamp authority must then vouch for the
	// time of signing.
	InsecureIgnoreLog bool
}

// signers verifies who made a signature.
type signers struct {
	keys       []trustedKey
	logged     bool        // signatures must be in a log
	identities *identities // instead of keys
}

// newSigners returns an error if there are neither keys nor identities or too many of
// them, if one of them is not supported, or if nothing says what log counts.
func newSigners(options Signers) (*signers, error) {
	s := &signers{logged: !options.InsecureIgnoreLog}
	switch {
	case len(options.Keys) == 0 && options.Keyless == nil:
		return nil, errors.New("a cosign verifier without keys could prove nothing")
	case options.Keyless != nil && (len(options.Keys) > 0 || options.Log != nil):
		return nil, errors.New("a cosign verifier has either keys or identities")
	case options.Keyless != nil:
		var err error
		if s.identities, err = newIdentities(*options.Keyless, s.logged); err != nil {
			return nil, err
		}
		return s, nil
	case options.Log == nil && s.logged:
		return nil, errors.New("a cosign verifier with keys needs the transparency logs that signatures must be in, or has to ignore logs")
	case options.Log != nil && !s.logged:
		return nil, errors.New("a cosign verifier cannot both name transparency logs and ignore them")
	case len(options.Keys) > maxKeys:
		return nil, fmt.Errorf("a cosign verifier has %d keys, the limit is %d", len(options.Keys), maxKeys)
	}
	for _, key := range options.Keys {
		trusted, err := newTrustedKey(key, options.Log)
		if err != nil {
			return nil, fmt.Errorf("key %s of %s: %w", key.Fingerprint, key.Name, err)
		}
		s.keys = append(s.keys, trusted)
	}
	return s, nil
}

// signer is who made a signature that was verified.
type signer struct {
	id      string         // distinct for distinct signers
	message string         // one sentence
	facts   map[string]any // for the extensions of the finding
}

func (k trustedKey) signer() signer {
	return signer{id: k.Fingerprint, message: fmt.Sprintf("signature verified by key %s of %s", k.Fingerprint, k.Name),
		facts: map[string]any{"keyFingerprint": k.Fingerprint}}
}

// signerOf returns who signed the bundle as a signature of want, if want is what its
// statement is about, which the caller reads. The bundle's hint at a key only chooses
// the words of a refusal.
func (s *signers) signerOf(ctx context.Context, parsed parsedBundle, want digest.Digest) (signer, error) {
	if s.identities != nil {
		return s.identities.checkIdentity(ctx, parsed, want)
	}
	hinted := false
	for _, key := range s.keys {
		hinted = hinted || parsed.hint == key.hint
		for _, algorithm := range key.algorithms {
			// Without the artifact the library would verify a plain Ed25519
			// signature over no bytes at all, whatever the digest.
			if parsed.message && !algorithm.digestOnly {
				continue
			}
			if ctx.Err() != nil {
				return signer{}, ctx.Err()
			}
			asked, artifact, err := parsed.question(want)
			if err != nil {
				return signer{}, malformed("the image to check has a damaged digest")
			}
			switch err := algorithm.verifyBundle(asked, artifact); {
			case err == nil:
				return key.signer(), nil
			case errors.Is(err, errPanic):
				return signer{}, malformed("the bundle is malformed")
			}
		}
	}
	if hinted {
		return signer{}, tampered("the bundle names a trusted key, but that key did not sign its content" + s.orLog())
	}
	return signer{}, s.wrongKey()
}

// verifyBundle verifies what a bundle says of an artifact with one key.
func (a algorithm) verifyBundle(asked *bundle.Bundle, artifact bundleverify.ArtifactPolicyOption) error {
	return guard(func() error {
		_, err := a.bundles.Verify(asked, bundleverify.NewPolicy(artifact, bundleverify.WithKey()))
		return err
	})
}

func (s *signers) wrongKey() error {
	stores := s.stores()
	return verify.Refuse(policy.ReasonWrongKey, fmt.Sprintf("no key of %s verifies the signature%s", stores, s.orLog()),
		fmt.Sprintf("sign the image with a key of %s, or have the signer's public key added there", stores))
}

// orLog adds to a message what else may be wrong where a log is demanded.
func (s *signers) orLog() string {
	if s.logged {
		return ", or it is not in a trusted transparency log"
	}
	return ""
}

// stores names where the keys come from, each once.
func (s *signers) stores() string {
	var names []string
	for _, key := range s.keys {
		if !slices.Contains(names, key.Name) {
			names = append(names, key.Name)
		}
	}
	return strings.Join(names, " or ")
}
