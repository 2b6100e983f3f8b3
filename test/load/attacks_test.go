//go:build nightly

package load

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const (
	bundleType  = "application/vnd.dev.sigstore.bundle.v0.3+json"
	payloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// attackers is the namespace evil with a key that nothing is signed with, and so many
// Verifiers with it.
func attackers(t *testing.T, verifiers int) string {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	return namespace("evil") + trust("evil", "keys", string(key.PEM)) + verifying(verifiers)
}

// verifying are Verifiers with the keys of the TrustStore, and a policy over all of them.
func verifying(verifiers int) string {
	var text strings.Builder
	var names []string
	for i := range verifiers {
		names = append(names, fmt.Sprintf("v%d", i))
		fmt.Fprintf(&text, `---
apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: v%d, namespace: evil}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}
`, i)
	}
	var demands []string
	for len(names) > 0 {
		n := min(len(names), 16)
		demands = append(demands, "{anyOf: ["+strings.Join(names[:n], ", ")+"]}")
		names = names[n:]
	}
	fmt.Fprintf(&text, `---
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: strict, namespace: evil}
spec: {rules: [{images: ["**"], require: [%s]}]}
`, strings.Join(demands, ", "))
	return text.String()
}

// bundle is a Sigstore bundle with the given parts of its verification material.
func bundle(material string) []byte {
	payload := base64.StdEncoding.EncodeToString([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`))
	return fmt.Appendf(nil,
		`{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":"x"}%s},"dsseEnvelope":{"payload":%q,"payloadType":"application/vnd.in-toto+json",`+
			`"signatures":[{"sig":"AAAA"}]}}`,
		bundleType, material, payload)
}

// hashed is the body of a log entry whose signature is by an RSA key of so many bits.
func hashed(t *testing.T, bits int) string {
	t.Helper()
	modulus, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	require.NoError(t, err)
	modulus.SetBit(modulus.SetBit(modulus, bits-1, 1), 0, 1)
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: modulus, E: 1<<31 - 1})
	require.NoError(t, err)
	key := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	signature := make([]byte, bits/8)
	signature[bits/8-1] = 1
	body, err := json.Marshal(map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
		"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": strings.Repeat("00", 32)}},
		"signature": map[string]any{"content": signature, "publicKey": map[string]any{"content": key}}}})
	require.NoError(t, err)
	return fmt.Sprintf(`{"logIndex":"1","logId":{"keyId":"AAAA"},"kindVersion":{"kind":"hashedrekord","version":"0.0.1"},"integratedTime":"1700000000",`+
		`"inclusionPromise":{"signedEntryTimestamp":"AAAA"},"canonicalizedBody":%q}`, base64.StdEncoding.EncodeToString(body))
}

// nested is DER of sequences within each other.
func nested(t *testing.T, depth int) string {
	t.Helper()
	text := []byte{}
	for len(text) < depth {
		next, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: text})
		require.NoError(t, err)
		text = next
	}
	return base64.StdEncoding.EncodeToString(text)
}

// layers has the same content in so many layers of a manifest.
func (r *impostor) layers(t *testing.T, content []byte, n int) []byte {
	t.Helper()
	var all []ocispec.Descriptor
	for range n {
		all = append(all, r.put(bundleType, content))
	}
	return manifest(t, all...)
}

// repeated is a JSON array of so many bytes.
func repeated(element string, bytes int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", bytes/(len(element)+1)), ",") + "]"
}

// attack is what one hostile team does: what its registry says, and what it writes.
type attack struct {
	registry  *impostor
	resources string // of the namespace evil
	same      bool   // it asks for one image all the time
	refused   bool   // its resources are past a limit on purpose
	arguments []string
}

// attacks are all of them by name.
var attacks = map[string]func(*testing.T) attack{
	"log entries with huge keys": evidence(func(t *testing.T, r *impostor) {
		r.refer(t, r.layers(t, bundle(`,"tlogEntries":[`+hashed(t, 200_000)+`]`), 4), r.layers(t, bundle(`,"tlogEntries":[`+hashed(t, 400_000)+`]`), 1))
	}),
	"many log entries of nothing": evidence(func(t *testing.T, r *impostor) {
		r.refer(t, r.layers(t, bundle(`,"tlogEntries":`+repeated("{}", 4<<20-4096)), 4))
	}),
	"timestamps that nest": evidence(func(t *testing.T, r *impostor) {
		r.refer(t, r.layers(t, bundle(`,"timestampVerificationData":{"rfc3161Timestamps":[{"signedTimestamp":"`+nested(t, 200_000)+`"}]}`), 4))
	}),
	"manifests of many layers": evidence(func(t *testing.T, r *impostor) {
		var manifests [][]byte
		for i := range 8 {
			manifests = append(manifests, fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"annotations":{"n":"%d"},"config":{},"layers":%s}`,
				ocispec.MediaTypeImageManifest, i, repeated("{}", 1<<20-4096)))
		}
		r.refer(t, manifests...)
	}),
	"a long list of referrers": evidence(func(_ *testing.T, r *impostor) {
		r.referrers = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":%s}`, ocispec.MediaTypeImageIndex, repeated("{}", 1<<20-4096))
	}),
	"a large signature tag": evidence(func(_ *testing.T, r *impostor) {
		r.tagged = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{},"layers":%s}`, ocispec.MediaTypeImageManifest,
			repeated(`{"mediaType":"`+payloadType+`"}`, 1<<20-4096))
	}),
	"as much evidence as is read": evidence(func(t *testing.T, r *impostor) {
		var manifests [][]byte
		for i := range 2 {
			manifests = append(manifests, r.layers(t, append(bundle(""), strings.Repeat(" ", 3<<20+i)...), 1))
		}
		r.refer(t, manifests...)
	}),
	"many verifiers": func(t *testing.T) attack {
		r := startImpostor(t)
		r.signatures(t)
		return attack{registry: r, resources: attackers(t, 151)}
	},
	"many large keys": func(t *testing.T) attack {
		r := startImpostor(t)
		r.signatures(t)
		return attack{registry: r, resources: namespace("evil") + trust("evil", "keys", largeKeys(t, 16)) + verifying(14)}
	},
	"many Verifiers that cannot be used": func(t *testing.T) attack {
		return attack{registry: startImpostor(t), refused: true, resources: namespace("evil") + trust("evil", "keys", largeKeys(t, 64)) + verifying(200)}
	},
	"a registry that never answers": func(t *testing.T) attack {
		r := startImpostor(t)
		r.hang = true
		return attack{registry: r, resources: attackers(t, 1), same: true}
	},
	"regular expressions that grow": func(t *testing.T) attack {
		return attack{registry: startImpostor(t),
			resources: keyless(t, 3, `{identities: [`+list(8, `{issuerRegExp: "(?:`+strings.Repeat("a", 650)+`){2}", subject: "x"}`)+
				`], rootTrustStoreRef: {name: root}}`)}
	},
	"expressions that grow": func(t *testing.T) attack {
		return attack{registry: startImpostor(t),
			resources: keyless(t, 11, `{identities: [{issuer: "a", subject: "b"}], rootTrustStoreRef: {name: root}, expression: "`+
				strings.TrimSuffix(strings.Repeat("claims.issuer == 'b' || ", 200), " || ")+`"}`)}
	},
	"expressions over long texts": largePredicates(strings.TrimSuffix(strings.Repeat("size(predicate.text) == 1 || ", 25), " || ")),
	"expressions over deep lists": largePredicates(strings.TrimSuffix(strings.Repeat("predicate == predicate && ", 60), " && ") + " && false"),
	"expressions over many words": largePredicates("predicate.words.all(w, predicate.words.exists(v, v != w) && w in predicate.words && " +
		"w.matches('(?:w|o|r|d)*x'))"),
	"expressions of policies": policyExpressions,
	"identities of 6 KB":      longIdentities(6 << 10),
	"identities of 800 bytes": longIdentities(800),
	"large revocation lists":  revocationLists,
	"slow patterns": func(t *testing.T) attack {
		var text strings.Builder
		for i := range 8 {
			fmt.Fprintf(&text, `"127.0.0.1:1/%sb%d",`, strings.Repeat("**/a*/", 15), i)
		}
		return attack{registry: startImpostor(t), resources: namespace("evil") + `---
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: patterns, namespace: evil}
spec: {rules: [{action: Deny, images: [` + text.String() + `]}]}
`}
	},
}

// evidence is an attack by strangers on a team that does nothing wrong.
func evidence(prepare func(*testing.T, *impostor)) func(*testing.T) attack {
	return func(t *testing.T) attack {
		r := startImpostor(t)
		prepare(t, r)
		return attack{registry: r, resources: attackers(t, 1)}
	}
}

// signatures lists as many signatures by nobody as are tried.
func (r *impostor) signatures(t *testing.T) {
	t.Helper()
	var layers []ocispec.Descriptor
	for i := range 32 {
		layer := r.put(payloadType, fmt.Appendf(nil, `{"critical":{"n":%d}}`, i))
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(make([]byte, 1024))}
		layers = append(layers, layer)
	}
	r.tagged = manifest(t, layers...)
}

// largeKeys are n RSA keys of 8192 bits with large exponents.
func largeKeys(t *testing.T, n int) string {
	t.Helper()
	var text strings.Builder
	for range n {
		modulus, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 8192))
		require.NoError(t, err)
		modulus.SetBit(modulus.SetBit(modulus, 8191, 1), 0, 1)
		der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: modulus, E: 1<<31 - 1})
		require.NoError(t, err)
		require.NoError(t, pem.Encode(&text, &pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	return text.String()
}

// keyless are so many Verifiers with the given signers, and the root that they name.
func keyless(t *testing.T, verifiers int, signers string) string {
	t.Helper()
	services, err := sigstore.New()
	require.NoError(t, err)
	root, err := services.TrustedRoot()
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString(namespace("evil"))
	fmt.Fprintf(&text, "---\napiVersion: landwaiter.dev/v1beta1\nkind: TrustStore\nmetadata: {name: root, namespace: evil}\nspec: {type: SigstoreRoot, source: "+
		"{inline: %q}}\n", root)
	for i := range verifiers {
		fmt.Fprintf(&text, "---\napiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: v%d, namespace: evil}\nspec: {type: Cosign, cosign: "+
			"{keyless: %s}}\n", i, signers)
	}
	return text.String()
}

func list(n int, element string) string {
	return strings.TrimSuffix(strings.Repeat(element+", ", n), ", ")
}

func TestAnAttackCostsNobodyElse(t *testing.T) {
	for name, prepare := range attacks {
		t.Run(name, func(t *testing.T) {
			besiege(t, prepare(t)).attack(t, 3*time.Second)
		})
	}
}

func TestAllAttacksAtOnceCostNobodyElse(t *testing.T) {
	var all []attack
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		all = append(all, attacks[name](t))
	}
	besiege(t, all...).attack(t, length(t, 6*time.Second))
}
