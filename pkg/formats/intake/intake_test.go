package intake_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// cheap requires that read refuses n bytes within the memory that evidence may take: 16
// times its size, and 1 MiB.
func cheap(t testing.TB, n int, read func() error) error {
	t.Helper()
	if n < 1<<10 {
		return read() // measuring takes longer than reading
	}
	var err error
	allocated := memory.Allocated(func() { err = read() })
	require.LessOrEqual(t, allocated, 16*n+1<<20, "%d bytes took %d", n, allocated)
	return err
}

// requireFault requires a refusal, for a limit or not.
func requireFault(t testing.TB, limit bool, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, limit, intake.IsLimit(err), "%v", err)
}

func repeated(before, item string, n int, after string) []byte {
	return []byte(before + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + after)
}

// bundleWith returns a bundle with the given members in its verification material.
func bundleWith(members string) []byte {
	return []byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}` + members +
		`},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA=="}]}}`)
}

func entryWith(body string) string { return entryAt(0, body) }

func entryAt(index int, body string) string {
	return fmt.Sprintf(`{"logIndex":"%d","logId":{"keyId":"AAAA"},"kindVersion":{"kind":"hashedrekord","version":"0.0.1"},"canonicalizedBody":%q}`,
		index, base64.StdEncoding.EncodeToString([]byte(body)))
}

// hashedrekord returns the body of a log entry with a key.
func hashedrekord(key []byte) string {
	return fmt.Sprintf(`{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":"00"}},"signature":{"content":"AA==",`+
		`"publicKey":{"content":%q}}}}`,
		base64.StdEncoding.EncodeToString(key))
}

func publicPEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// rsaKey returns a key that nobody has the private part of.
func rsaKey(bits, exponent int) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	return &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: exponent}
}

// certificate returns a certificate for a key of its own, or for the given one.
func certificate(t testing.TB, name string, key any, edit func(*x509.Certificate)) []byte {
	t.Helper()
	issuer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if key == nil {
		key = issuer.Public()
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	if edit != nil {
		edit(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, &x509.Certificate{Subject: pkix.Name{CommonName: "issuer"}}, key, issuer)
	require.NoError(t, err)
	return der
}

// der returns an element with a definite length.
func der(tag byte, contents ...[]byte) []byte {
	var content []byte
	for _, c := range contents {
		content = append(content, c...)
	}
	head := []byte{tag}
	switch n := len(content); {
	case n < 0x80:
		head = append(head, byte(n))
	case n < 1<<16:
		head = append(head, 0x82, byte(n>>8), byte(n))
	default:
		head = append(head, 0x83, byte(n>>16), byte(n>>8), byte(n))
	}
	return append(head, content...)
}

// token returns a TimeStampToken with certificates and so many signers; nothing in it is
// signed.
func token(t testing.TB, signers int, certificates ...[]byte) []byte {
	t.Helper()
	kind, err := asn1.Marshal(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2})
	require.NoError(t, err)
	var infos []byte
	for range signers {
		infos = append(infos, der(0x30, []byte{2, 1, 1})...)
	}
	signed := der(0x30, []byte{2, 1, 3}, der(0x31), der(0x30, kind), der(0xa0, certificates...), der(0x31, infos))
	return der(0x30, kind, der(0xa0, signed))
}

func response(token []byte) []byte { return der(0x30, der(0x30, []byte{2, 1, 0}), token) }

// nested returns DER that nests so deep.
func nested(depth int, inner []byte) []byte {
	for range depth {
		inner = der(0x30, inner)
	}
	return inner
}

func timestampWith(data []byte) string {
	return fmt.Sprintf(`{"signedTimestamp":%q}`, base64.StdEncoding.EncodeToString(data))
}

func TestReadsWhatSigningToolsWrite(t *testing.T) {
	leaf := certificate(t, "leaf", nil, nil)
	body := hashedrekord(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}))
	data := bundleWith(`,"tlogEntries":[` + entryWith(body) + `],"timestampVerificationData":{"rfc3161Timestamps":[` +
		timestampWith(response(token(t, 1, leaf))) + `]}`)
	both, err := intake.Bundle(data, intake.Vouchers{Log: true, Time: true})
	require.NoError(t, err)
	require.Len(t, both.GetVerificationMaterial().GetTlogEntries(), 1)
	require.Len(t, both.GetVerificationMaterial().GetTimestampVerificationData().GetRfc3161Timestamps(), 1)
	none, err := intake.Bundle(data, intake.Vouchers{})
	require.NoError(t, err)
	require.Empty(t, none.GetVerificationMaterial().GetTlogEntries())
	require.Nil(t, none.GetVerificationMaterial().GetTimestampVerificationData())
	require.NoError(t, intake.TimestampToken(token(t, 1, leaf)))
}

func TestWhatAVerifierDoesNotNeedIsNotRead(t *testing.T) {
	slow := entryWith(hashedrekord(publicPEM(t, rsaKey(8193, 65537))))
	data := bundleWith(`,"tlogEntries":[` + slow + `,{},{},{},{},{}],"timestampVerificationData":{"rfc3161Timestamps":[{"signedTimestamp":"AAAA"}]}`)
	_, err := intake.Bundle(data, intake.Vouchers{})
	require.NoError(t, err)
	_, err = intake.Bundle(data, intake.Vouchers{Log: true})
	requireFault(t, true, err)
	_, err = intake.Bundle(data, intake.Vouchers{Time: true})
	requireFault(t, false, err)
}

// The amplifications of hostile evidence, each refused before a parser sees it.
func TestHostileEvidenceIsRefusedInMemoryOfItsSize(t *testing.T) {
	const mib = 1 << 20
	bundle := func(data []byte) func() error {
		return func() error {
			_, err := intake.Bundle(data, intake.Vouchers{Log: true, Time: true})
			return err
		}
	}
	manifest := func(data []byte) func() error {
		return func() error { _, err := intake.Manifest(data, ""); return err }
	}
	deep := []byte(strings.Repeat("[", 4*mib))
	entries := bundleWith(string(repeated(`,"tlogEntries":[`, "{}", 4*mib/3, "]")))
	hashes := bundleWith(string(repeated(`,"tlogEntries":[{"inclusionProof":{"hashes":[`, `""`, 4*mib/3, "]}}]")))
	layers := repeated(`{"schemaVersion":2,"layers":[`, "{}", mib/3, "]}")
	annotations := repeated(`{"schemaVersion":2,"annotations":{`, `"":""`, mib/6, "}}")
	ber := append([]byte(strings.Repeat("\x30\x80", 2<<10)), make([]byte, 4<<10)...)
	deepDER, allDER := nested(200, make([]byte, 1<<12)), nested(23, der(4, make([]byte, 8<<10)))
	wide := der(0x30, []byte(strings.Repeat("\x05\x00", 7<<10)))
	cbor := append([]byte{0x9a, 0, 0x10, 0, 0}, make([]byte, mib)...)
	nestedCBOR := []byte(strings.Repeat("\x81", mib))
	for name, c := range map[string]struct {
		n     int
		read  func() error
		limit bool
	}{
		"deep JSON":                      {len(deep), bundle(deep), true},
		"many log entries":               {len(entries), bundle(entries), true},
		"many hashes":                    {len(hashes), bundle(hashes), true},
		"many layers":                    {len(layers), manifest(layers), true},
		"many annotations of one name":   {len(annotations), manifest(annotations), false},
		"a statement of empty lists":     {4 * mib, func() error { return scanned(repeated("[", "[]", 4*mib/3, "]")) }, true},
		"a statement of small objects":   {4 * mib, func() error { return scanned(repeated("[", `{"a":0}`, mib/2, "]")) }, true},
		"BER of indefinite lengths":      {len(ber), func() error { return intake.TimestampToken(ber) }, false},
		"DER that nests deep":            {len(deepDER), func() error { return intake.TimestampToken(deepDER) }, true},
		"DER that nests all its content": {len(allDER), func() error { return intake.TimestampToken(allDER) }, true},
		"DER of many elements":           {len(wide), func() error { return intake.TimestampToken(wide) }, true},
		"a timestamp that is large":      {20 << 10, func() error { return intake.TimestampToken(make([]byte, 20<<10)) }, true},
		"CBOR of many items":             {len(cbor), func() error { return intake.COSE(cbor) }, true},
		"CBOR that nests deep":           {len(nestedCBOR), func() error { return intake.COSE(nestedCBOR) }, true},
		"CBOR of indefinite lengths":     {mib, func() error { return intake.COSE([]byte{0x9f, 0xff}) }, false},
		"JWS of many values":             {mib, func() error { return intake.JWS(repeated(`{"header":{"x5c":[`, `""`, mib/3, "]}}")) }, true},
		"JWS with a deep protected header": {mib, func() error {
			return intake.JWS([]byte(`{"payload":"e30","protected":"` + base64.RawURLEncoding.EncodeToString(deep[:mib]) + `"}`))
		}, true},
	} {
		t.Run(name, func(t *testing.T) { requireFault(t, c.limit, cheap(t, c.n, c.read)) })
	}
}

func scanned(data []byte) error {
	_, err := intake.StatementMemory(data)
	return err
}

// Each bound on nesting holds by itself, whatever the others would refuse.
func TestNestingIsBounded(t *testing.T) {
	octets := make([]byte, 12<<10)
	for i := range octets {
		octets[i] = 0xff // no DER
	}
	list := func(depth int) []byte { return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)) }
	protected := append([]byte{0x84, 0x58, 21}, append([]byte(strings.Repeat("\x81", 20)), 0, 0xa0, 0x42, '{', '}', 0x40)...)
	for name, c := range map[string]struct {
		err  error
		text string
	}{
		"JSON":                    {intake.Payload(list(18)), "nests deeper than 16"},
		"a statement":             {scanned(list(66)), "nests deeper than 64"},
		"CBOR":                    {intake.COSE([]byte(strings.Repeat("\x81", 20))), "nests deeper than 16"},
		"a protected CBOR header": {intake.COSE(protected), "nests deeper than 16"},
		"DER":                     {intake.TimestampToken(nested(26, nil)), "nests deeper than 24"},
		"DER of much content":     {intake.TimestampToken(nested(20, der(4, octets))), "nests too much of its content"},
		"indefinite lengths":      {intake.TimestampToken(append([]byte{0x30, 0x80}, []byte(strings.Repeat("\x05\x00", 64))...)), "indefinite length"},
		"CBOR of no length":       {intake.COSE([]byte{0x9f, 0xff}), "indefinite length"},
	} {
		require.ErrorContains(t, c.err, c.text, name)
	}
	require.NoError(t, intake.Payload(list(17)))
	require.NoError(t, scanned(list(65)))
}

func TestRefusesKeysThatAreSlowToVerifyWith(t *testing.T) {
	huge := new(big.Int).Lsh(big.NewInt(1), 4000)
	exponent, err := asn1.Marshal(struct{ N, E *big.Int }{rsaKey(2048, 3).N, huge.Add(huge, big.NewInt(1))})
	require.NoError(t, err)
	large := publicPEM(t, rsaKey(8193, 65537))
	largest := certificate(t, "x", rsaKey(8192, 65537), nil)
	tooLarge := certificate(t, "x", rsaKey(8200, 65537), nil)
	_, err = intake.Certificate(largest)
	require.NoError(t, err)
	v2 := func(member string, raw []byte) string {
		return fmt.Sprintf(`{"apiVersion":"0.0.2","kind":"hashedrekord","spec":{"hashedRekordV002":{"data":{},"signature":{"content":"AA==",`+
			`"verifier":{%q:{"rawBytes":%q}}}}}}`,
			member, base64.StdEncoding.EncodeToString(raw))
	}
	block, _ := pem.Decode(large)
	encoded := base64.StdEncoding.EncodeToString(large)
	for name, c := range map[string]struct {
		body  string
		limit bool
	}{
		"an RSA key of 8193 bits":         {hashedrekord(large), true},
		"an RSA key with a long exponent": {hashedrekord(publicPEM(t, rsaKey(2048, 1<<31+1))), true},
		"an RSA key with a huge exponent": {hashedrekord(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: exponent})), false},
		"the second of two keys":          {hashedrekord(append(publicPEM(t, rsaKey(2048, 3)), large...)), true},
		"many keys":                       {hashedrekord([]byte(strings.Repeat(string(publicPEM(t, rsaKey(1024, 3))), 11))), true},
		"a certificate's key":             {hashedrekord(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tooLarge})), true},
		"no key":                          {hashedrekord([]byte("x")), false},
		"a key of Rekor v2":               {v2("publicKey", block.Bytes), true},
		"a certificate of Rekor v2":       {v2("x509Certificate", tooLarge), true},
		"a verifier of a dsse entry":      {`{"apiVersion":"0.0.1","kind":"dsse","spec":{"signatures":[{"signature":"","verifier":"` + encoded + `"}]}}`, true},
		"a key of an intoto entry": {`{"apiVersion":"0.0.2","kind":"intoto","spec":{"content":{"envelope":{"signatures":[{"publicKey":"` + encoded +
			`"}]}}}}`, true},
		"two signatures of an intoto entry":   {`{"apiVersion":"0.0.2","kind":"intoto","spec":{"content":{"envelope":{"signatures":[{},{}]}}}}`, true},
		"two signatures of a dsse entry":      {`{"apiVersion":"0.0.1","kind":"dsse","spec":{"signatures":[{},{}]}}`, true},
		"a proposed envelope with signatures": {`{"apiVersion":"0.0.1","kind":"dsse","spec":{"proposedContent":{"envelope":"{}","verifiers":["AA=="]}}}`, false},
		"another kind":                        {`{"apiVersion":"0.0.1","kind":"rekord","spec":{}}`, false},
		"a kind twice":                        {`{"apiVersion":"0.0.1","kind":"hashedrekord","Kind":"dsse","spec":{}}`, false},
		"a body of many values":               {string(repeated(`{"spec":{"signatures":[`, "{}", 100, "]}}")), true},
		"a large body":                        {strings.Repeat(" ", 64<<10+1), true},
	} {
		t.Run(name, func(t *testing.T) {
			data := bundleWith(`,"tlogEntries":[` + entryWith(c.body) + `]`)
			requireFault(t, c.limit, cheap(t, len(data), func() error {
				_, err := intake.Bundle(data, intake.Vouchers{Log: true})
				return err
			}))
		})
	}
}

func TestRefusesMoreVouchersThanCanCount(t *testing.T) {
	body := hashedrekord(publicPEM(t, rsaKey(2048, 3)))
	five := make([]string, 5)
	for i := range five {
		five[i] = entryAt(i, body)
	}
	read := func(members string) error {
		_, err := intake.Bundle(bundleWith(members), intake.Vouchers{Log: true, Time: true})
		return err
	}
	list := func(entries ...string) string { return `,"tlogEntries":[` + strings.Join(entries, ",") + `]` }
	require.NoError(t, read(list(five[:4]...)))
	requireFault(t, true, read(list(five...)))
	requireFault(t, false, read(list(five[0], five[0])))
	padded := hashedrekord(publicPEM(t, rsaKey(2048, 3))) + strings.Repeat(" ", 10<<10)
	requireFault(t, true, read(list(entryAt(0, padded), entryAt(1, padded), entryAt(2, padded))))
	edited := func(member string) string { return list(strings.TrimSuffix(entryWith(body), "}") + "," + member + "}") }
	long := strings.Repeat("A", 16<<10)
	requireFault(t, true, read(edited(string(repeated(`"inclusionProof":{"hashes":[`, `"AAAA"`, 65, "]}")))))
	requireFault(t, true, read(edited(`"inclusionProof":{"rootHash":"`+long+`"}`)))
	requireFault(t, true, read(edited(`"inclusionProof":{"checkpoint":{"envelope":"`+long+`"}}`)))
	requireFault(t, true, read(edited(`"inclusionPromise":{"signedEntryTimestamp":"`+long+`"}`)))

	stamps := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, timestampWith(response(token(t, 1, certificate(t, fmt.Sprint(i), nil, nil)))))
		}
		return `,"timestampVerificationData":{"rfc3161Timestamps":[` + strings.Join(append(all, all...), ",") + `]}`
	}
	require.NoError(t, read(stamps(4)), "a repeated timestamp counts once")
	requireFault(t, true, read(stamps(5)))
	large := func(name string) string {
		pad := func(c *x509.Certificate) { c.DNSNames = []string{strings.Repeat("a", 11<<10)} }
		return timestampWith(response(token(t, 1, certificate(t, name, nil, pad))))
	}
	require.NoError(t, read(`,"timestampVerificationData":{"rfc3161Timestamps":[`+large("1")+","+large("2")+`]}`))
	requireFault(t, true, read(`,"timestampVerificationData":{"rfc3161Timestamps":[`+large("1")+","+large("2")+","+large("3")+`]}`))
}

func TestRefusesTimestampsThatAreSlowToVerify(t *testing.T) {
	leaf := certificate(t, "leaf", nil, nil)
	var eleven [][]byte
	for i := range 11 {
		eleven = append(eleven, certificate(t, fmt.Sprint(i), nil, nil))
	}
	for name, c := range map[string]struct {
		token []byte
		limit bool
	}{
		"no signer":                          {token(t, 0, leaf), false},
		"two signers":                        {token(t, 2, leaf), false},
		"eleven certificates":                {token(t, 1, eleven...), true},
		"two certificates of a subject":      {token(t, 1, leaf, certificate(t, "leaf", nil, nil)), true},
		"a slow key":                         {token(t, 1, certificate(t, "x", rsaKey(16384, 3), nil)), true},
		"a certificate that is none":         {token(t, 1, der(0x30)), false},
		"another element than a certificate": {token(t, 1, der(0xa1)), false},
		"trailing data":                      {append(token(t, 1, leaf), 5, 0), false},
		"something else":                     {der(0x30, der(0x30)), false},
	} {
		t.Run(name, func(t *testing.T) {
			requireFault(t, c.limit, cheap(t, len(c.token), func() error { return intake.TimestampToken(c.token) }))
			if name != "trailing data" {
				requireFault(t, c.limit, intake.TimestampResponse(response(c.token)))
			}
		})
	}
}

func TestRefusesCertificatesOfManyParts(t *testing.T) {
	names := certificate(t, "x", nil, func(c *x509.Certificate) { c.DNSNames = strings.Split(strings.Repeat("a,", 600), ",")[:600] })
	requireFault(t, true, cheap(t, len(names), func() error { _, err := intake.Certificate(names); return err }))
	large := certificate(t, "x", nil, func(c *x509.Certificate) { c.DNSNames = []string{strings.Repeat("a", 16<<10)} })
	_, err := intake.Certificate(large)
	requireFault(t, true, err)
	_, err = intake.Certificates(make([][]byte, 11))
	requireFault(t, true, err)
}
