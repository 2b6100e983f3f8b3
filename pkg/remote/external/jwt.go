package external

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
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
	head := map[string]string{"alg": "RS256", "typ": "JWT"}
	if keyID != "" {
		head["kid"] = keyID
	}
	header, err := json.Marshal(head)
	if err != nil {
		return "", problem("the header of the assertion cannot be written")
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", problem("the claims of the assertion cannot be written")
	}
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", problem("the private key cannot sign")
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
