//go:build azure

package external

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"
)

// jsonWebKey is a public key as Azure Key Vault gives it (RFC 7518 section 6, with -HSM
// after the type of a key that is in hardware).
type jsonWebKey struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
	N     string `json:"n"`
	E     string `json:"e"`
}

func (k jsonWebKey) public() (crypto.PublicKey, error) {
	malformed := problem("the Azure key is malformed")
	switch strings.TrimSuffix(k.Type, "-HSM") {
	case "EC":
		curve, known := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[k.Curve]
		if !known {
			return nil, problem("the Azure key is on a curve that is not supported: use P-256, P-384 or P-521")
		}
		x, errX := base64.RawURLEncoding.DecodeString(k.X)
		y, errY := base64.RawURLEncoding.DecodeString(k.Y)
		size := (curve.Params().BitSize + 7) / 8
		if errX != nil || errY != nil || len(x) != size || len(y) != size {
			return nil, malformed
		}
		key, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y))
		if err != nil {
			return nil, malformed
		}
		return key, nil
	case "RSA":
		n, errN := base64.RawURLEncoding.DecodeString(k.N)
		e, errE := base64.RawURLEncoding.DecodeString(k.E)
		if errN != nil || errE != nil || len(n) == 0 || len(n) > maxModulus || len(e) == 0 || len(e) > 4 {
			return nil, malformed
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, nil
	}
	return nil, problem("the Azure key is neither EC nor RSA")
}
