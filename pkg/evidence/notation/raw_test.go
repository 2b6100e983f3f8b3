package notation_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/veraison/go-cose"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const (
	schemeHeader        = "io.cncf.notary.signingScheme"
	authenticTimeHeader = "io.cncf.notary.authenticSigningTime"
	signingTimeHeader   = "io.cncf.notary.signingTime"
	expiryHeader        = "io.cncf.notary.expiry"
	pluginHeader        = "io.cncf.notary.verificationPlugin"
	pluginMinHeader     = "io.cncf.notary.verificationPluginMinVersion"
	profileHeader       = "com.amazonaws.signer.signingProfileVersion"
	jobHeader           = "com.amazonaws.signer.signingJob"
)

// headers are the signed attributes of an envelope that no library would make, by their
// names in a JWS.
type headers map[string]any

// critical returns the names that are marked critical.
func (h headers) critical() []string { return h["crit"].([]string) }

func (h headers) mark(name string) { h["crit"] = append(slices.Clone(h.critical()), name) }

// drop removes an attribute.
func (h headers) drop(name string) {
	delete(h, name)
	h["crit"] = slices.DeleteFunc(slices.Clone(h.critical()), func(s string) bool { return s == name })
}

// rawEnvelope signs headers as they are, in a JWS or COSE.
func rawEnvelope(t testing.TB, img fixture.Image, signer *fixture.Certificate, h headers, inCOSE bool) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"targetArtifact": img.Descriptor})
	require.NoError(t, err)
	if inCOSE {
		return rawCOSE(t, signer, payload, h, nil)
	}
	protected, err := json.Marshal(h)
	require.NoError(t, err)
	return rawJWS(t, signer, payload, protected)
}

func rawJWS(t testing.TB, signer *fixture.Certificate, payload, protected []byte) []byte {
	t.Helper()
	first, second := base64.RawURLEncoding.EncodeToString(protected), base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(first + "." + second))
	r, s, err := ecdsa.Sign(rand.Reader, signer.Key.(*ecdsa.PrivateKey), sum[:])
	require.NoError(t, err)
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	text, err := json.Marshal(map[string]any{"payload": second, "protected": first, "header": map[string]any{"x5c": certificates(signer)},
		"signature": base64.RawURLEncoding.EncodeToString(signature)})
	require.NoError(t, err)
	return text
}

func certificates(signer *fixture.Certificate) (chain [][]byte) {
	for _, certificate := range signer.Chain {
		chain = append(chain, certificate.Raw)
	}
	return chain
}

// unixTime is a time as CBOR tag 1 (RFC 8949 section 3.4.2).
type unixTime time.Time

func (u unixTime) MarshalCBOR() ([]byte, error) {
	at := time.Time(u).Unix()
	if at < 0 || at > math.MaxUint32 {
		at = 0
	}
	return binary.BigEndian.AppendUint32([]byte{0xc1, 0x1a}, uint32(at)), nil
}

// rawCOSE signs headers in COSE. If raw is not nil it changes the encoded headers.
func rawCOSE(t testing.TB, signer *fixture.Certificate, payload []byte, h headers, raw func([]byte) []byte) []byte {
	t.Helper()
	message := cose.NewSign1Message()
	message.Payload = payload
	critical := []any{}
	for _, name := range h.critical() {
		critical = append(critical, name)
	}
	message.Headers.Protected = cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm: cose.AlgorithmES256, cose.HeaderLabelContentType: h["cty"], cose.HeaderLabelCritical: critical,
	}
	for name, value := range h {
		if name == "alg" || name == "cty" || name == "crit" {
			continue
		}
		if at, ok := value.(time.Time); ok {
			value = unixTime(at)
		}
		message.Headers.Protected[name] = value
	}
	var chain []any
	for _, certificate := range certificates(signer) {
		chain = append(chain, certificate)
	}
	message.Headers.Unprotected = cose.UnprotectedHeader{cose.HeaderLabelX5Chain: chain}
	key, err := cose.NewSigner(cose.AlgorithmES256, signer.Key)
	require.NoError(t, err)
	if raw != nil {
		encoded, err := message.Headers.MarshalProtected()
		require.NoError(t, err)
		message.Headers.RawProtected = raw(encoded)
	}
	require.NoError(t, message.Sign(rand.Reader, nil, key))
	encoded, err := message.MarshalCBOR()
	require.NoError(t, err)
	return encoded
}

// with returns a copy of headers after a change.
func (h headers) with(change func(headers)) headers {
	changed := maps.Clone(h)
	change(changed)
	return changed
}
