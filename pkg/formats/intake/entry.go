package intake

import (
	"bytes"
	"encoding/json"
)

// entryBody has only the members of canonical log entries that can be verified. Members that
// clients only propose to a log, such as envelopes with many signatures, are not part of a
// canonical entry.
type entryBody struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		// hashedrekord 0.0.1
		Data      json.RawMessage `json:"data"`
		Signature struct {
			Content   []byte `json:"content"`
			PublicKey struct {
				Content []byte `json:"content"` // PEM
			} `json:"publicKey"`
		} `json:"signature"`
		// dsse 0.0.1
		EnvelopeHash json.RawMessage `json:"envelopeHash"`
		PayloadHash  json.RawMessage `json:"payloadHash"`
		Signatures   []struct {
			Signature string `json:"signature"`
			Verifier  []byte `json:"verifier"` // PEM
		} `json:"signatures"`
		// intoto 0.0.2
		Content struct {
			Envelope struct {
				Payload     string `json:"payload"`
				PayloadType string `json:"payloadType"`
				Signatures  []struct {
					KeyID     string `json:"keyid"`
					PublicKey []byte `json:"publicKey"` // PEM
					Sig       string `json:"sig"`
				} `json:"signatures"`
			} `json:"envelope"`
			Hash        json.RawMessage `json:"hash"`
			PayloadHash json.RawMessage `json:"payloadHash"`
		} `json:"content"`
		// hashedrekord 0.0.2, of Rekor v2
		HashedRekordV002 struct {
			Data      json.RawMessage `json:"data"`
			Signature struct {
				Content  []byte `json:"content"`
				Verifier struct {
					KeyDetails      json.RawMessage `json:"keyDetails"`
					PublicKey       derKey          `json:"publicKey"`
					X509Certificate derKey          `json:"x509Certificate"`
				} `json:"verifier"`
			} `json:"signature"`
		} `json:"hashedRekordV002"`
	} `json:"spec"`
}

type derKey struct {
	RawBytes []byte `json:"rawBytes"`
}

// checkBody reads the body of a log entry. Anyone can choose its keys, and libraries use them
// during parsing.
func checkBody(data []byte) error {
	if len(data) > maxEntryBody {
		return pastLimit("has a log entry of %d bytes, the limit is %d", len(data), maxEntryBody)
	}
	if err := scanJSON(data, jsonLimits{depth: maxDepth, values: maxEntryValues, members: maxMembers}); err != nil {
		return within("has a log entry that", err)
	}
	var kind struct{ Kind, APIVersion string }
	if err := json.Unmarshal(data, &kind); err != nil {
		return malformed("has a log entry that is malformed")
	}
	switch kind.Kind + " " + kind.APIVersion {
	case "hashedrekord 0.0.1", "hashedrekord 0.0.2", "dsse 0.0.1", "intoto 0.0.2":
	case "intoto 0.0.1":
		return malformed("has a log entry of the kind intoto 0.0.1, which has no signature: only newer kinds are supported")
	default:
		return malformed("has a log entry of a kind that is not supported: only hashedrekord, dsse and intoto 0.0.2 are")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var body entryBody
	if err := decoder.Decode(&body); err != nil {
		return malformed("has a log entry that is not as its kind says")
	}
	return body.checkKeys()
}

// checkKeys checks the keys of every kind, regardless of the kind that the body states.
func (b *entryBody) checkKeys() error {
	texts := [][]byte{b.Spec.Signature.PublicKey.Content}
	for _, signature := range b.Spec.Signatures {
		texts = append(texts, signature.Verifier)
	}
	for _, signature := range b.Spec.Content.Envelope.Signatures {
		texts = append(texts, signature.PublicKey)
	}
	// A DSSE envelope in a bundle has one signature (sigstore_bundle.proto).
	if len(b.Spec.Signatures) > 1 || len(b.Spec.Content.Envelope.Signatures) > 1 {
		return pastLimit("has a log entry with more than one signature")
	}
	for _, text := range texts {
		if err := checkPEM(text); err != nil {
			return within("has a log entry that", err)
		}
	}
	verifier := b.Spec.HashedRekordV002.Signature.Verifier
	if key := verifier.PublicKey.RawBytes; len(key) > 0 {
		if err := checkPublicKey(key); err != nil {
			return within("has a log entry that", err)
		}
	}
	if der := verifier.X509Certificate.RawBytes; len(der) > 0 {
		if _, err := Certificate(der); err != nil {
			return within("has a log entry that", err)
		}
	}
	return nil
}
