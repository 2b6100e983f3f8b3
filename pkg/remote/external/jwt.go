package external

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"

	"github.com/go-jose/go-jose/v4"
)

// parseRSA reads the private key that a field of credentials holds.
func parseRSA(field, text string) (*rsa.PrivateKey, error) {
	wrong := problem(field + " is not an RSA key of 2048 to 4096 bits in PEM")
	block, _ := pem.Decode([]byte(text))
	if block == nil || len(block.Bytes) > maxPrivateKey {
		return nil, wrong
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok || key.N.BitLen() < 2048 || key.N.BitLen() > 4096 {
		return nil, wrong
	}
	return key, nil
}

// signJWT returns a JWT that is signed with RS256. KeyID may be empty.
func signJWT(key *rsa.PrivateKey, keyID string, claims map[string]any) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT")
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", problem("the claims of the assertion cannot be written")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
	if err != nil {
		return "", problem("the private key cannot sign")
	}
	signed, err := signer.Sign(body)
	if err != nil {
		return "", problem("the private key cannot sign")
	}
	return signed.CompactSerialize()
}
