package compile

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Plain reports whether a ClusterStore names nothing but its registries: no other host, no
// Secret and no identity.
func Plain(spec v1beta1.StoreSpec) bool {
	return spec.Identity == nil && spec.Proxy == nil &&
		!slices.ContainsFunc(resource.FieldsOfStore(spec), func(f resource.Field) bool { return f.Use != resource.Registry })
}

// Public returns what t proves, without comments, headers and addresses, and false if it
// cannot be shown: trust material from a Secret, a server or a key management service never is.
func (t *TrustStore) Public(spec v1beta1.TrustStoreSpec) (string, bool) {
	if t.Err != nil || !t.Open || spec.AWSSigner != nil || len(t.Text) > maxShownTrust {
		return "", false
	}
	text := publicPEM(t.Text)
	if spec.Type == v1beta1.TrustStoreTypeSigstoreRoot {
		text = withoutAddresses(t.Text)
	}
	again := &TrustStore{kind: spec.Type}
	if len(text) == 0 || again.parse(spec, text) != nil || !slices.Equal(again.shape(), t.shape()) {
		return "", false
	}
	return string(text), true
}

// shape counts what t has of each kind of trust material.
func (t *TrustStore) shape() []int {
	root := 0
	if t.Root != nil {
		root = 1 + len(t.Root.RekorLogs())
	}
	return []int{len(t.Keys), len(t.Certificates), len(t.lists), root}
}

// publicPEM returns the blocks of PEM text that are public by their kind, without headers.
func publicPEM(text []byte) []byte {
	var public bytes.Buffer
	for _, block := range trust.Blocks(text) {
		switch block.Type {
		case "PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE", "X509 CRL":
			_ = pem.Encode(&public, &pem.Block{Type: block.Type, Bytes: block.Bytes}) // a buffer takes everything
		default:
			return nil
		}
	}
	return public.Bytes()
}

// PublicKeys reduces the keys that a verifier holds itself to what [publicPEM] returns, and
// returns false if they cannot be shown: who pastes the wrong text pastes a private key.
func PublicKeys(spec *v1beta1.VerifierSpec) bool {
	text := InlineKeys(*spec)
	if text == "" {
		return true
	}
	keys, err := trust.ParsePublicKeys([]byte(text))
	if err != nil {
		return false
	}
	public := publicPEM([]byte(text))
	if again, err := trust.ParsePublicKeys(public); err != nil || len(again) != len(keys) {
		return false
	}
	*spec = *spec.DeepCopy()
	SignersOf(*spec).Keys.Inline = string(public)
	return true
}

// withoutAddresses returns a trusted root without the addresses of its services, which no
// check uses. It returns nil for a text that is not JSON.
func withoutAddresses(text []byte) []byte {
	var root any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&root) != nil {
		return nil
	}
	var strip func(any)
	strip = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range []string{"baseUrl", "base_url", "uri", "url", "operator"} {
				delete(value, key)
			}
			for _, below := range value {
				strip(below)
			}
		case []any:
			for _, below := range value {
				strip(below)
			}
		}
	}
	strip(root)
	stripped, err := json.Marshal(root)
	if err != nil {
		return nil
	}
	return stripped
}
