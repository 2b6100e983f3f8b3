//go:build e2e

package signer

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const (
	workflow   = "https://github.com/example/app/.github/workflows/release.yml@refs/heads/main"
	actions    = "https://token.actions.githubusercontent.com"
	provenance = "https://slsa.dev/provenance/v1"
)

// mirror serves a TUF repository with a trusted root, and returns the trust store's source.
func mirror(t *testing.T, trusted []byte) string {
	t.Helper()
	repository, err := sigstore.NewRepository()
	require.NoError(t, err)
	dir, expires := t.TempDir(), time.Now().Add(time.Hour)
	require.NoError(t, repository.Write(dir, sigstore.RepositoryState{Version: 1, Expires: expires, Fresh: expires, TrustedRoot: trusted}))
	root, err := os.ReadFile(filepath.Join(dir, "1.root.json"))
	require.NoError(t, err)
	authority, err := fixture.NewAuthority("mirror")
	require.NoError(t, err)
	issued, err := authority.IssueServer("127.0.0.1")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.FileServer(http.Dir(dir)))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{issued.TLS}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return fmt.Sprintf("source:\n  tuf:\n    mirror: %s\n    root: %s\n    caBundle: {inline: %s}", server.URL, strconv.Quote(string(root)), strconv.Quote(string(authority.CertificatePEM)))
}

// The recipe of docs/attestations.md, "GitHub's own Sigstore instance".
func TestAttestationsOfPrivateRepositoriesAtGitHubAreVerified(t *testing.T) {
	registry := startRegistry(t)
	github, err := sigstore.New()
	require.NoError(t, err)
	publicGood, err := sigstore.New()
	require.NoError(t, err)
	trusted, err := github.TrustedRootWithoutLogs()
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, dir, "all", loopback(registry), teamOf("team-a"),
		resource("ClusterTrustStore", "", "github", "type: SigstoreRoot\n"+mirror(t, trusted)),
		resource("Verifier", "team-a", "release", strings.Join([]string{
			"type: Attestation", "attestation:", "  predicateType: " + provenance, "  keyless:",
			"    identities: [{issuer: " + actions + ", subjectRegExp: 'https://github\\.com/example/app/\\.github/workflows/release\\.yml@.*'}]",
			"    trustStoreRef: {kind: ClusterTrustStore, name: github}",
			"    insecureIgnoreTransparencyLog: true", "    insecureIgnoreSCT: true",
			"  expression: predicate.buildDefinition.externalParameters.workflow.repository == \"https://github.com/example/app\"",
		}, "\n")),
		resource("VerificationPolicy", "team-a", "images", everything))
	attested := func(name string, by *sigstore.Sigstore, identity, repository string, options sigstore.SignOptions) fixture.Image {
		img := push(t, registry, "team-a/"+name)
		predicate := map[string]any{"buildDefinition": map[string]any{"externalParameters": map[string]any{"workflow": map[string]any{"repository": repository}}}}
		bundle, err := by.Bundle(identity, actions, sigstore.Statement(img.Descriptor.Digest, provenance, predicate), options)
		require.NoError(t, err)
		target, err := registry.Repository(t.Context(), img.Reference.Repository)
		require.NoError(t, err)
		_, err = registry.PushBundle(t.Context(), target, img, bundle)
		require.NoError(t, err)
		return img
	}
	const app = "https://github.com/example/app"
	images := map[string]struct {
		img  fixture.Image
		says string
	}{
		"without a timestamp":   {attested("unstamped", github, workflow, app, sigstore.SignOptions{WithoutLog: true, WithoutTimestamp: true}), "failed to verify timestamps"},
		"of the public good":    {attested("public", publicGood, workflow, app, sigstore.SignOptions{}), "does not hold under ClusterTrustStore github"},
		"of another repository": {attested("fork", github, strings.Replace(workflow, "example", "mallory", 1), app, sigstore.SignOptions{WithoutLog: true}), "an identity that the Verifier does not trust"},
		"about another source":  {attested("source", github, workflow, "https://github.com/mallory/app", sigstore.SignOptions{WithoutLog: true}), "does not meet the expression"},
	}
	good := attested("app", github, workflow, app, sigstore.SignOptions{WithoutLog: true})
	roots := filepath.Join(t.TempDir(), "none.pem")
	require.NoError(t, os.WriteFile(roots, nil, 0o600))
	w := start(t, registry, dir, roots)
	verdict, why := w.judged(t, "team-a", good)
	require.Equal(t, gatekeeper.Allowed, verdict, why)
	for name, c := range images {
		verdict, why := w.judged(t, "team-a", c.img)
		require.Equal(t, gatekeeper.Denied, verdict, name)
		require.Contains(t, why, c.says, name)
	}
}
