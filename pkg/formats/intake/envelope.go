package intake

import (
	"encoding/base64"
	"encoding/json"
)

// JWS refuses a JWS envelope of the Notary Project (signature envelope JWS specification)
// whose parts are not JSON, nest too deep, have too many values or a name twice.
func JWS(data []byte) error {
	if err := JSON(data); err != nil {
		return err
	}
	var envelope struct {
		Payload   string `json:"payload"`
		Protected string `json:"protected"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return malformed("is not a JWS envelope")
	}
	for _, part := range []string{envelope.Protected, envelope.Payload} {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return malformed("is not a JWS envelope")
		}
		if err := JSON(text); err != nil {
			return err
		}
	}
	return nil
}
