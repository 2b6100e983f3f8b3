package trust

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func publicPEM(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	require.NoError(t, err)
	return encode("PUBLIC KEY", der)
}

func ecdsaKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	return key
}

func certificatePEM(t testing.TB) string {
	t.Helper()
	key := ecdsaKey(t, elliptic.P256())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return encode("CERTIFICATE", der)
}

func TestParsesEveryStrongKeyAndNamesItByItsDER(t *testing.T) {
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	rsaPublic := &rsaKey(t, 2048).PublicKey
	all := map[string]any{
		"P-256":   ecdsaKey(t, elliptic.P256()).Public(),
		"P-384":   ecdsaKey(t, elliptic.P384()).Public(),
		"P-521":   ecdsaKey(t, elliptic.P521()).Public(),
		"Ed25519": edwards,
		"RSA":     rsaPublic,
	}
	var together string
	for name, key := range all {
		t.Run(name, func(t *testing.T) {
			parsed, err := ParsePublicKeys([]byte(publicPEM(t, key)))
			require.NoError(t, err)
			require.Len(t, parsed, 1)
			require.Equal(t, key, parsed[0].Key)
			der, err := x509.MarshalPKIXPublicKey(key)
			require.NoError(t, err)
			sum := sha256.Sum256(der)
			require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), parsed[0].Fingerprint)
		})
		together += publicPEM(t, key) + "\n\r\n "
	}
	parsed, err := ParsePublicKeys([]byte(together))
	require.NoError(t, err)
	require.Len(t, parsed, len(all))
	pkcs1, err := ParsePublicKeys([]byte(encode("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(rsaPublic))))
	require.NoError(t, err)
	pkix, err := ParsePublicKeys([]byte(publicPEM(t, rsaPublic)))
	require.NoError(t, err)
	require.Equal(t, pkix, pkcs1)
}

// As people have them: RFC 7468 section 2 permits text around a block.
func TestReadsKeysWithWhatToolsAndPeoplePutAroundThem(t *testing.T) {
	good, other := publicPEM(t, ecdsaKey(t, elliptic.P256()).Public()), publicPEM(t, ecdsaKey(t, elliptic.P384()).Public())
	for name, text := range map[string]string{
		"byte order mark":         "\ufeff" + good,
		"text before":             "key of team-a, valid until the END of 2027\n" + good,
		"text after":              good + "\nkey of team-a",
		"Windows line ends":       strings.ReplaceAll(good, "\n", "\r\n"),
		"no end of the last line": strings.TrimSpace(good),
		"parameters":              encode("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}) + good,
		"attributes of OpenSSL":   "Bag Attributes\n    friendlyName: release\n    localKeyID: 54 69 6D 65 20\nKey Attributes: <No Attributes>\n" + good,
		"a comment of a key":      "# ssh-ed25519 AAAA is another one\n# -----BEGIN PUBLIC KEY-----\n" + good,
		"indented":                "\n  " + good,
		"a comment of another":    "# the PRIVATE KEY is in the HSM\n" + good,
		"words like boundaries":   "friendlyName: end-entity key\nsubject=CN=Example End Entity Certificate\n" + good,
	} {
		parsed, err := ParsePublicKeys([]byte(text))
		require.NoError(t, err, name)
		require.Len(t, parsed, 1, name)
	}
	parsed, err := ParsePublicKeys([]byte("\ufeffold\r\n" + good + "new\n" + other))
	require.NoError(t, err)
	require.Len(t, parsed, 2)
}

func TestRefusesWhatIsNotAStrongPublicKey(t *testing.T) {
	private := ecdsaKey(t, elliptic.P256())
	good := publicPEM(t, private.Public())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	agreement, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	require.NoError(t, err)
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":                {"", "found nothing"},
		"blanks":                 {" \n\t", "found nothing"},
		"private key":            {encode("PRIVATE KEY", pkcs8), "private key"},
		"EC private key":         {encode("EC PRIVATE KEY", sec1), "private key"},
		"cosign private key":     {encode("ENCRYPTED SIGSTORE PRIVATE KEY", pkcs8), "private key"},
		"private after public":   {good + encode("PRIVATE KEY", pkcs8), "private key"},
		"certificate":            {certificatePEM(t), "found a certificate"},
		"unknown block":          {encode("PGP PUBLIC KEY BLOCK", der), "PGP PUBLIC KEY BLOCK"},
		"DER":                    {string(der), "binary data"},
		"DER after a key":        {good + string(der), "binary data"},
		"SSH key":                {"ssh-ed25519 AAAA me@host", "an SSH key (convert it with ssh-keygen"},
		"SSH key of ECDSA":       {"# mine\necdsa-sha2-nistp256 AAAA me@host\n" + good, "an SSH key"},
		"SSH key of a token":     {"sk-ssh-ed25519@openssh.com AAAA me@host\n", "an SSH key"},
		"SSH key of RFC 4716":    {"---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n", "an SSH key"},
		"JSON Web Key":           {`{"kty":"EC","crv":"P-256"}`, "a JSON Web Key"},
		"private JSON Web Key":   {`{"kty":"EC","d":"x"}`, "found a private key"},
		"encoded once more":      {base64.StdEncoding.EncodeToString([]byte(good)), "encoded in Base64 once more"},
		"line ends as text":      {strings.ReplaceAll(strings.TrimSpace(good), "\n", `\n`), `has \n as text`},
		"private, one line":      {strings.ReplaceAll(encode("PRIVATE KEY", pkcs8), "\n", `\n`), "found a private key"},
		"private, other dashes":  {"\u2014BEGIN PRIVATE KEY-\n", "found a private key"},
		"a quoted one":           {good + "> " + strings.ReplaceAll(good, "\n", "\n> "), "a damaged beginning"},
		"one in a field":         {good + `KEY="` + strings.ReplaceAll(good, "\n", `\n`) + `"`, "a damaged beginning"},
		"one in a list":          {good + "- " + good, "a damaged beginning"},
		"one in JSON lines":      {good + `"` + strings.ReplaceAll(good, "\n", "\\n\"\n\""), "a damaged beginning"},
		"another line end":       {good + "text\u2028" + good, "a damaged beginning"},
		"quoted Base64":          {good + "> " + strings.SplitN(good, "\n", 3)[1] + "\n", "Base64 without"},
		"Base64 of DER":          {base64.StdEncoding.EncodeToString(der), "Base64 without the lines BEGIN and END"},
		"four dashes":            {good + strings.Replace(good, "-----BEGIN", "----BEGIN", 1), "damaged"},
		"other dashes":           {strings.ReplaceAll(good, "-----", "\u2014\u2014\u2014"), "a damaged beginning"},
		"no dashes":              {strings.ReplaceAll(good, "-----", ""), "a damaged beginning"},
		"no first line":          {strings.SplitN(good, "\n", 2)[1], "Base64 without"},
		"UTF-16":                 {"\xff\xfe-\x00-\x00", "UTF-16"},
		"only text":              {"here comes the key\n", "found text without a PEM block"},
		"only parameters":        {encode("EC PARAMETERS", []byte{6, 0}), "found text without a PEM block"},
		"cut off":                {good[:len(good)-5], "damaged"},
		"damaged before a good":  {"-----BEGIN PUBLIC KEY-----\n%\n-----END PUBLIC KEY-----\n" + good, "damaged"},
		"no end before a good":   {"-----BEGIN PUBLIC KEY-----\n" + good, "damaged"},
		"trailing DER":           {encode("PUBLIC KEY", append(bytes.Clone(der), 0)), "damaged or unknown key"},
		"private key, wrong tag": {encode("PUBLIC KEY", pkcs8), "PEM block 1: the key is damaged, or is no public key"},
		"empty block":            {encode("PUBLIC KEY", nil), "the key is damaged, or is no public key"},
		"a byte that is wrong": {good + encode("PUBLIC KEY", append([]byte{der[0], der[1] + 1}, der[2:]...)),
			"PEM block 2: the key is damaged, or is no public key"},
		"P-224":             {publicPEM(t, ecdsaKey(t, elliptic.P224()).Public()), "ECDSA P-224"},
		"RSA 1024":          {publicPEM(t, &rsaKey(t, 1024).PublicKey), "1024-bit RSA"},
		"huge RSA":          {publicPEM(t, &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 16383, 1), E: 65537}), "16384-bit RSA"},
		"X25519":            {publicPEM(t, agreement.PublicKey()), "X25519"},
		"weak after strong": {good + publicPEM(t, &rsaKey(t, 1024).PublicKey), "PEM block 2"},
		"too many":          {strings.Repeat(good, MaxKeys+1), "more than 16"},
		"too large":         {good + strings.Repeat("\n", maxKeysInput), "want at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ParsePublicKeys([]byte(tt.text))
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, "want")
			require.Nil(t, keys)
			require.NotContains(t, err.Error(), "AAAA", "what was given is not repeated: it may be secret")
		})
	}
}

func TestParsesCertificatesInTheirOrder(t *testing.T) {
	first, second := certificatePEM(t), certificatePEM(t)
	parsed, err := ParseCertificates([]byte(first + "\n" + second))
	require.NoError(t, err)
	require.Len(t, parsed, 2)
	require.Equal(t, first, encode("CERTIFICATE", parsed[0].Raw))
	require.Equal(t, second, encode("CERTIFICATE", parsed[1].Raw))
}

func TestRefusesWhatIsNotACertificate(t *testing.T) {
	good := certificatePEM(t)
	private := ecdsaKey(t, elliptic.P256())
	sec1, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":         {"", "found nothing"},
		"public key":      {publicPEM(t, private.Public()), "found a public key"},
		"private key too": {good + encode("EC PRIVATE KEY", sec1), "private key"},
		"other block":     {encode("CERTIFICATE REQUEST", nil), "CERTIFICATE REQUEST"},
		"damaged":         {encode("CERTIFICATE", []byte("x")), "damaged certificate"},
		"half of another": {good + strings.SplitN(good, "\n", 2)[1], "Base64 without"},
		"only a comment":  {"# nothing here", "found text without a PEM block"},
		"too many":        {strings.Repeat(good, MaxCertificates+1), "more than 256"},
		"too large":       {good + strings.Repeat("\n", maxCertificatesInput), "at most 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			certificates, err := ParseCertificates([]byte(tt.text))
			require.ErrorContains(t, err, tt.says)
			require.Nil(t, certificates)
		})
	}
}

// Whatever a tenant writes, it is read in linear time.
func TestTextOfManyLinesIsReadOnce(t *testing.T) {
	for name, text := range map[string]string{
		"empty lines":           strings.Repeat("\n", maxCertificatesInput-10),
		"spaces":                strings.Repeat(" ", maxCertificatesInput-10),
		"beginnings in a line":  strings.Repeat("x-----BEGIN ", maxCertificatesInput/12-10),
		"beginnings and spaces": strings.Repeat("   \t  -----BEGIN ", maxCertificatesInput/17-10),
		"beginnings of lines":   strings.Repeat("\n-----BEGIN ", maxCertificatesInput/12-10),
		"comments":              strings.Repeat("#\n", maxCertificatesInput/2-10),
	} {
		_, err := ParseCertificates([]byte(text)) // milliseconds; a minute in quadratic time
		require.Error(t, err, name)
		Blocks([]byte(text))
	}
}

// FuzzParse checks that every parsed key and certificate is strong and within the limits,
// and survives a round trip.
func FuzzParse(f *testing.F) {
	f.Add([]byte(publicPEM(f, ecdsaKey(f, elliptic.P256()).Public())))
	f.Add([]byte(publicPEM(f, &rsaKey(f, 2048).PublicKey)))
	f.Add([]byte(certificatePEM(f)))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if certificates, err := ParseCertificates(data); err == nil {
			require.NotEmpty(t, certificates)
			require.LessOrEqual(t, len(certificates), MaxCertificates)
		}
		keys, err := ParsePublicKeys(data)
		if err != nil {
			return
		}
		var again string
		for _, key := range keys {
			require.NoError(t, checkStrength(key.Key))
			again += publicPEM(t, key.Key)
		}
		reread, err := ParsePublicKeys([]byte(again))
		require.NoError(t, err)
		require.Equal(t, keys, reread)
	})
}

func TestLinesOfCommentMayNameWhatComesNext(t *testing.T) {
	for _, text := range []string{"# release key\n%s", "%s# that was it", "#\n# two lines\n\n%s\n# and\n"} {
		good := publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())
		keys, err := ParsePublicKeys([]byte(strings.ReplaceAll(text, "%s", good)))
		require.NoError(t, err)
		require.Len(t, keys, 1)
	}
}
