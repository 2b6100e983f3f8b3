//go:build !e2e

package evidence

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const spdx = "https://spdx.dev/Document/v2.3"

// way is one way to keep evidence in a registry.
type way struct {
	name     string
	material []byte
	verifier v1beta1.VerifierSpec
	sign     func(t *testing.T, at *fixture.Registry, img fixture.Image)
}

// withoutLog is a Verifier of attestations by a key.
func withoutLog(predicateType string) v1beta1.VerifierSpec {
	keys := byKey(trusted).Cosign.Keys
	return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeAttestation,
		Attestation: &v1beta1.AttestationVerifier{PredicateType: predicateType, Signers: v1beta1.Signers{Keys: keys}}}
}

// ways are those in which the fixture keeps evidence, as tools do.
func ways(t *testing.T) []way {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	ca, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	leaf, err := ca.IssueSigner("release", fixture.CertificateOptions{})
	require.NoError(t, err)
	by := func(sign func(*fixture.Registry, fixture.Image) error) func(*testing.T, *fixture.Registry, fixture.Image) {
		return func(t *testing.T, at *fixture.Registry, img fixture.Image) {
			t.Helper()
			require.NoError(t, sign(at, img))
		}
	}
	return []way{
		{"signature tag", key.PEM, byKey(trusted), by(func(at *fixture.Registry, img fixture.Image) error {
			_, err := at.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
			return err
		})},
		{"signature as a referrer", key.PEM, byKey(trusted), by(func(at *fixture.Registry, img fixture.Image) error {
			_, err := at.SignCosignReferrer(t.Context(), img, key, fixture.CosignOptions{})
			return err
		})},
		{"bundle", key.PEM, byKey(trusted), by(func(at *fixture.Registry, img fixture.Image) error {
			_, err := at.SignCosignBundle(t.Context(), img, key, fixture.CosignOptions{})
			return err
		})},
		{"attestation bundle", key.PEM, withoutLog(spdx), by(func(at *fixture.Registry, img fixture.Image) error {
			_, err := at.SignCosignBundle(t.Context(), img, key, fixture.CosignOptions{Payload: sigstore.Statement(img.Descriptor.Digest, spdx, map[string]any{})})
			return err
		})},
		{"notation", ca.CertificatePEM, byCertificate(), by(func(at *fixture.Registry, img fixture.Image) error {
			_, err := at.SignNotation(t.Context(), img, leaf, fixture.NotationOptions{})
			return err
		})},
	}
}

// requireEveryWay has each way keep evidence at inner, and requires that it counts at outer, which has the same content.
// It returns what outer lacks.
func requireEveryWay(t *testing.T, inner, outer *fixture.Registry, kept []way) string {
	t.Helper()
	lacks := ""
	for i, w := range kept {
		img, unsigned := push(t, inner, repository, fmt.Sprintf("signed-%d", i)), push(t, inner, repository, fmt.Sprintf("unsigned-%d", i))
		w.sign(t, inner, img)
		seen := func(img fixture.Image) image.Reference {
			ref, err := image.Parse(strings.Replace(img.Reference.String(), inner.Host(), outer.Host(), 1))
			require.NoError(t, err)
			return ref
		}
		result := decide(t, outer, w.verifier, w.material, seen(img))
		require.Equal(t, verify.AnswerAllowed, result.Answer(), "%s: %s", w.name, result.Verdict.Reason)
		if i > 0 {
			require.Equal(t, lacks, result.Looked[0].Lacks, w.name)
		}
		lacks = result.Looked[0].Lacks
		result = decide(t, outer, w.verifier, w.material, seen(unsigned))
		require.Equal(t, verify.AnswerDenied, result.Answer(), w.name)
		require.Contains(t, result.Verdict.Reason, "no ", w.name)
		require.Empty(t, result.Looked[0].Lacks, "where nothing is, the repository may be missing")
	}
	return lacks
}

// strips and rewrites are what reverse proxies do to the answers of a registry.
func strips(resp *http.Response) error {
	for _, header := range []string{"Docker-Content-Digest", "Docker-Distribution-Api-Version", "Content-Type", "OCI-Filters-Applied", "OCI-Subject", "ETag",
		"Link", "Warning"} {
		resp.Header.Del(header)
	}
	return nil
}

func rewrites(resp *http.Response) error {
	if kind := resp.Header.Get("Content-Type"); kind != "" {
		resp.Header.Set("Content-Type", strings.ToUpper(kind[:1])+kind[1:]+"; charset=utf-8")
	}
	if resp.Header.Get("Docker-Content-Digest") != "" {
		resp.Header.Set("Docker-Content-Digest", "sha512:"+strings.Repeat("0", 128))
	}
	resp.Header.Set("ETag", `W/"1"`)
	resp.Header.Set("Cache-Control", "no-transform")
	return nil
}

// row is what the page says of a registry.
func row(name, lacks string) string {
	has := "yes"
	if lacks != "" {
		has = "no"
	}
	return fmt.Sprintf("| %s | %s |", name, has)
}

// requireOnPage fails unless the page has the row of a registry.
func requireOnPage(t *testing.T, name, lacks string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.Root, "docs", "reference", "compatibility.md"))
	require.NoError(t, err)
	require.True(t, strings.Contains(string(page), row(name, lacks)), "the page lacks the row %s", row(name, lacks))
}

func TestEvidenceCountsInEveryRegistryHoweverItIsKept(t *testing.T) {
	strict := start(t, fixture.RegistryOptions{})
	for name, c := range map[string]struct {
		inner *fixture.Registry
		outer fixture.RegistryOptions
	}{
		"ociregistry (`ociserver`)":                            {start(t, fixture.RegistryOptions{}), fixture.RegistryOptions{}},
		"go-containerregistry (`crane registry`)":              {start(t, fixture.RegistryOptions{WrongTypes: true}), fixture.RegistryOptions{}},
		"go-containerregistry without referrers":               {start(t, fixture.RegistryOptions{NoReferrers: true}), fixture.RegistryOptions{}},
		"a reverse proxy that removes headers":                 {strict, fixture.RegistryOptions{Upstream: strict.Address(), Rewrite: strips}},
		"a reverse proxy that changes media types and digests": {strict, fixture.RegistryOptions{Upstream: strict.Address(), Rewrite: rewrites}},
	} {
		t.Run(name, func(t *testing.T) {
			outer := c.inner
			if c.outer.Upstream != "" {
				outer = start(t, c.outer)
			}
			lacks := requireEveryWay(t, c.inner, outer, ways(t))
			if c.outer.Upstream != "" {
				require.Empty(t, lacks, "the registry behind it has the API")
				return
			}
			requireOnPage(t, name, lacks)
		})
	}
}
