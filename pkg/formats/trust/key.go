package trust

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	wantedKeys    = `"PUBLIC KEY" or "RSA PUBLIC KEY" PEM blocks`
	wantedKeyType = "ECDSA P-256, P-384 or P-521, Ed25519, or RSA of 2048 to 8192 bits"
)

// PublicKey is a key to verify signatures with.
type PublicKey struct {
	Key crypto.PublicKey // *ecdsa.PublicKey, ed25519.PublicKey or *rsa.PublicKey
	// Fingerprint is "sha256:" and the hex digest of the key's DER encoded
	// SubjectPublicKeyInfo (RFC 5280 section 4.1).
	Fingerprint string
}

// ParsePublicKeys reads 1 to 16 public keys from PEM text of at most 64 KiB:
// "PUBLIC KEY" blocks (RFC 7468 section 13) and "RSA PUBLIC KEY" blocks
// (RFC 8017 appendix A.1.1). It refuses the whole text if one block is not a strong
// public key. The error says what was found and what is wanted.
func ParsePublicKeys(text []byte) ([]PublicKey, error) {
	return parseAll("public keys", text, wantedKeys, maxKeysInput, MaxKeys, parsePublicKey)
}

func parsePublicKey(b *pem.Block) (PublicKey, error) {
	var key crypto.PublicKey
	var err error
	switch b.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(b.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(b.Bytes)
	case "CERTIFICATE":
		return PublicKey{},
			errors.New("found a certificate, want " + wantedKeys + "; extract its key with: openssl x509 -pubkey -noout -in CERTIFICATE")
	default:
		return PublicKey{}, fmt.Errorf("found a %.40q block, want %s", b.Type, wantedKeys)
	}
	if err != nil {
		return PublicKey{}, keyError(err)
	}
	if err := checkStrength(key); err != nil {
		return PublicKey{}, err
	}
	sum, err := fingerprint(key)
	if err != nil {
		return PublicKey{}, err
	}
	return PublicKey{Key: key, Fingerprint: sum}, nil
}

// keyError explains why a key cannot be parsed. The errors of the ASN.1 decoder name its own
// structures.
func keyError(err error) error {
	var structure asn1.StructuralError
	var syntax asn1.SyntaxError
	if errors.As(err, &structure) || errors.As(err, &syntax) {
		return errors.New("the key is damaged, or is no public key, want " + wantedKeyType + "; copy the file again")
	}
	return fmt.Errorf("found a damaged or unknown key, want %s: %w", wantedKeyType, err)
}

// checkStrength returns an error unless key has a strong type, curve and size: ECDSA
// P-256, P-384 or P-521, Ed25519, or RSA of 2048 to 8192 bits.
func checkStrength(key crypto.PublicKey) error {
	found := fmt.Sprintf("%T", key)
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		found = "ECDSA " + k.Curve.Params().Name
	case ed25519.PublicKey:
		if len(k) == ed25519.PublicKeySize {
			return nil
		}
		found = "damaged Ed25519"
	case *rsa.PublicKey:
		bits := k.N.BitLen()
		if bits >= MinRSABits && bits <= MaxRSABits {
			return nil
		}
		found = fmt.Sprintf("%d-bit RSA", bits)
	case *ecdh.PublicKey:
		found = "X25519 (key agreement)"
	}
	return fmt.Errorf("found a key of type %s, want %s", found, wantedKeyType)
}

// fingerprint returns "sha256:" and the hex digest of key's DER encoded
// SubjectPublicKeyInfo.
func fingerprint(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
