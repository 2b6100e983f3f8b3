//go:build azure

package external

import (
	"crypto"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// jsonWebKey is a public key from Azure Key Vault (RFC 7518 section 6, with the suffix -HSM
// in the type of a hardware key).
type jsonWebKey struct {
	Type  string `json:"kty"`
	Curve string `json:"crv,omitempty"`
	X     string `json:"x,omitempty"`
	Y     string `json:"y,omitempty"`
	N     string `json:"n,omitempty"`
	E     string `json:"e,omitempty"`
}

func (k jsonWebKey) public() (crypto.PublicKey, error) {
	k.Type = strings.TrimSuffix(k.Type, "-HSM")
	switch {
	case k.Type != "EC" && k.Type != "RSA":
		return nil, problem("the Azure key is neither EC nor RSA")
	case k.Type == "EC" && !slices.Contains([]string{"P-256", "P-384", "P-521"}, k.Curve):
		return nil, problem("the Azure key is on a curve that is not supported: use P-256, P-384 or P-521")
	}
	var read jose.JSONWebKey
	text, err := json.Marshal(k)
	if err != nil || len(k.N) > maxModulus || len(k.E) > maxExponent || read.UnmarshalJSON(text) != nil {
		return nil, problem("the Azure key is malformed")
	}
	return read.Key, nil
}
