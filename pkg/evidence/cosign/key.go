package cosign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/landwaiter/landwaiter/pkg/formats/trust"
)

// trustedKey is a key with every algorithm that cosign may have signed with.
type trustedKey struct {
	Key
	// hint is the name of the key in bundles: the base64 SHA-256 of its DER.
	hint       string
	algorithms []algorithm
}

// algorithm verifies signatures of one key with one hash.
type algorithm struct {
	verifier signature.Verifier
	hash     crypto.Hash // zero for plain Ed25519
	plain    ed25519.PublicKey
	bundles  *bundleverify.Verifier
	// digestOnly is set if the SHA-256 of the signed bytes suffices to verify a
	// signature.
	digestOnly bool
}

func newTrustedKey(key Key, log root.TrustedMaterial) (trustedKey, error) {
	if key.Fingerprint == "" {
		return trustedKey{}, errors.New("has no fingerprint, so nobody could be named as signer")
	}
	hashes, err := hashesOf(key)
	if err != nil {
		return trustedKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public)
	if err != nil {
		return trustedKey{}, fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	trusted := trustedKey{Key: key, hint: base64.StdEncoding.EncodeToString(sum[:])}
	for _, hash := range hashes {
		verifier, err := loadVerifier(key.Public, hash)
		if err != nil {
			return trustedKey{}, err
		}
		bundles, err := newBundleVerifier(verifier, log)
		if err != nil {
			return trustedKey{}, err
		}
		plain, _ := key.Public.(ed25519.PublicKey)
		trusted.algorithms = append(trusted.algorithms, algorithm{verifier: verifier, hash: hash, plain: plain, bundles: bundles, digestOnly: hash == crypto.SHA256})
	}
	return trusted, nil
}

// hashesOf returns the hashes to try with key, the likeliest first. For Ed25519, zero
// means the pure form, which cosign wrote before v2.4, and SHA-512 means Ed25519ph
// (RFC 8032 section 5.1), which it has written since.
func hashesOf(key Key) ([]crypto.Hash, error) {
	var usual []crypto.Hash
	switch k := key.Public.(type) {
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("an Ed25519 key has %d bytes, this one %d", ed25519.PublicKeySize, len(k))
		}
		return []crypto.Hash{crypto.SHA512, 0}, nil
	case *rsa.PublicKey:
		if k == nil || k.N == nil || k.N.BitLen() < trust.MinRSABits {
			return nil, fmt.Errorf("RSA keys need at least %d bits", trust.MinRSABits)
		}
		usual = []crypto.Hash{crypto.SHA256}
	case *ecdsa.PublicKey:
		usual = curveHashes(k)
	}
	if usual == nil {
		return nil, fmt.Errorf("keys of type %T, or of this curve, are not supported", key.Public)
	}
	switch key.Hash {
	case 0:
		return usual, nil
	case crypto.SHA256, crypto.SHA384, crypto.SHA512:
		return []crypto.Hash{key.Hash}, nil
	}
	return nil, fmt.Errorf("hash %s is not supported, use SHA-256, SHA-384 or SHA-512", key.Hash)
}

// curveHashes follows cosign, which used SHA-256 for every curve before v2.4, and has
// since used the curve's default in the Sigstore algorithm registry.
func curveHashes(key *ecdsa.PublicKey) []crypto.Hash {
	if key == nil {
		return nil
	}
	switch key.Curve {
	case elliptic.P256():
		return []crypto.Hash{crypto.SHA256}
	case elliptic.P384():
		return []crypto.Hash{crypto.SHA384, crypto.SHA256}
	case elliptic.P521():
		return []crypto.Hash{crypto.SHA512, crypto.SHA256}
	}
	return nil
}

func loadVerifier(key crypto.PublicKey, hash crypto.Hash) (signature.Verifier, error) {
	if k, ok := key.(ed25519.PublicKey); ok {
		if hash == 0 {
			return signature.LoadED25519Verifier(k)
		}
		return signature.LoadED25519phVerifier(k)
	}
	return signature.LoadVerifier(key, hash)
}

// newBundleVerifier returns a verifier of bundles that trusts one key, whatever the
// bundle's hint, and no certificate or timestamp authority. With a log, signatures must
// be in it.
func newBundleVerifier(verifier signature.Verifier, log root.TrustedMaterial) (*bundleverify.Verifier, error) {
	expiring := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return expiring, nil
	})
	options := []bundleverify.VerifierOption{bundleverify.WithNoObserverTimestamps(), bundleverify.WithoutStatementPredicate()}
	var trusted root.TrustedMaterial = material
	if log != nil {
		trusted = root.TrustedMaterialCollection{material, log}
		options = append(options, bundleverify.WithTransparencyLog(1))
	}
	v, err := bundleverify.NewVerifier(trusted, options...)
	if err != nil {
		return nil, fmt.Errorf("make a bundle verifier: %w", err)
	}
	return v, nil
}
