//go:build nightly

package load

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// Attacks by a team that signs what its own rules then look at: each of its images has evidence that is valid up to
// what makes the rules expensive.

const largeType = "https://example.com/large"

// filler is text of so many bytes, half as many characters, for which a length is counted each time.
func filler(bytes int) string { return strings.Repeat("é", bytes/2) }

// largePredicates have expressions over attestations of two megabytes.
func largePredicates(expression string) func(*testing.T) attack {
	return func(t *testing.T) attack {
		r := startImpostor(t)
		key, err := fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
		var nested any = []any{}
		for range 30 {
			nested = []any{nested, "x", filler(1000)}
		}
		predicate := map[string]any{"text": filler(1 << 20), "nested": nested, "words": strings.Split(strings.Repeat("word ", 100_000), " ")}
		encoded, err := json.Marshal(predicate)
		require.NoError(t, err)
		r.made = func(subject digest.Digest) (string, []byte, error) {
			content, err := fixture.CosignBundle(fixture.Image{Descriptor: ocispec.Descriptor{Digest: subject}}, key,
				fixture.CosignOptions{Payload: sigstore.Statement(subject, largeType, json.RawMessage(encoded))})
			return bundleType, content, err
		}
		return attack{registry: r, resources: namespace("evil") + trust("evil", "keys", string(key.PEM)) + fmt.Sprintf(`---
apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: v, namespace: evil}
spec: {type: Attestation, attestation: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}, predicateType: %q, expression: %q}}
`, largeType, expression)}
	}
}

// policyExpressions compare all findings with each other, in as many requirements as a rule may have.
func policyExpressions(t *testing.T) attack {
	r := startImpostor(t)
	r.signatures(t)
	expression := strings.TrimSuffix(strings.Repeat("findings == findings && ", 60), " && ") + " && false"
	return attack{registry: r, resources: attackers(t, 16) + fmt.Sprintf(`---
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: expressions, namespace: evil}
spec: {rules: [{images: ["**"], require: [%s]}]}
`, list(16, fmt.Sprintf("{expression: %q}", expression)))}
}

// longIdentities have a name of so many bytes, and regular expressions as large as they may be.
func longIdentities(length int) func(*testing.T) attack {
	return func(t *testing.T) attack {
		r := startImpostor(t)
		services, err := sigstore.New()
		require.NoError(t, err)
		root, err := services.TrustedRoot()
		require.NoError(t, err)
		identity := strings.Repeat("a", length) + "@example.com"
		r.made = func(subject digest.Digest) (string, []byte, error) {
			content, err := services.Bundle(identity, "https://accounts.example.com",
				sigstore.Statement(subject, "https://sigstore.dev/cosign/sign/v1", map[string]any{}), sigstore.SignOptions{})
			return bundleType, content, err
		}
		return attack{registry: r, resources: namespace("evil") + fmt.Sprintf(`---
apiVersion: landwaiter.dev/v1beta1
kind: TrustStore
metadata: {name: root, namespace: evil}
spec: {type: SigstoreRoot, source: {inline: %q}}
---
apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: v, namespace: evil}
spec: {type: Cosign, cosign: {keyless: {identities: [%s], rootTrustStoreRef: {name: root}}}}
`, root, list(8, `{issuer: "https://accounts.example.com", subjectRegExp: "(?:a*a*a*){40}b"}`))}
	}
}

// revocationLists are of eleven megabytes, of a host that a cluster admin permits, for each certificate of a chain of nine.
func revocationLists(t *testing.T) attack {
	r := startImpostor(t)
	responder := fixture.NewResponder()
	t.Cleanup(responder.Close)
	lists := fixture.CertificateOptions{Lists: "http://" + responder.Host() + "/all.crl"}
	root, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	at := root
	for i := range 7 {
		at, err = at.IssueAuthority(fmt.Sprintf("issuing %d", i), lists)
		require.NoError(t, err)
	}
	leaf, err := at.IssueSigner("release", lists)
	require.NoError(t, err)
	many := fixture.ListOptions{}
	for n := range int64(310_000) { // of others: a list that repeats one of the chain is not read to its end
		many.Revoked = append(many.Revoked, &x509.Certificate{SerialNumber: big.NewInt(1<<56 + n)})
	}
	text, err := at.RevocationListPEM(many)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	responder.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(block.Bytes) })
	r.made = func(subject digest.Digest) (string, []byte, error) {
		options := fixture.NotationOptions{}
		content, err := fixture.NotationEnvelope(fixture.Image{Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: subject, Size: 512}},
			leaf, options)
		return options.MediaType(), content, err
	}
	var certificate bytes.Buffer
	require.NoError(t, pem.Encode(&certificate, &pem.Block{Type: "CERTIFICATE", Bytes: root.Chain[0].Raw}))
	return attack{registry: r, arguments: []string{"--egress-host=" + responder.Host()}, resources: namespace("evil") +
		strings.Replace(trust("evil", "ca", certificate.String()), "type: PublicKeys", "type: Certificates", 1) + `---
apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: v, namespace: evil}
spec: {type: Notation, notation: {trustStoreRefs: [{name: ca}], trustedIdentities: ["*"]}}
`}
}
