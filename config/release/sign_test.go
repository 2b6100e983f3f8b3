//go:build nightly

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// newKey returns a signer with a new key pair, and the file of the public key.
func newKey(t *testing.T) (s signer, public string) {
	t.Helper()
	s.cosign = suite.MustTool(t, suite.CosignV3)
	keys := t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "secret")
	generate := exec.CommandContext(t.Context(), s.cosign, "generate-key-pair", "--output-key-prefix", filepath.Join(keys, "cosign"))
	output, err := generate.CombinedOutput()
	require.NoError(t, err, "%s", output)
	s.key = filepath.Join(keys, "cosign.key")
	return s, filepath.Join(keys, "cosign.pub")
}

// writeRelease returns a folder with a signed release.
func writeRelease(t *testing.T, s signer) string {
	t.Helper()
	folder := t.TempDir()
	made, err := newMaker(t).release(t.Context())
	require.NoError(t, err)
	require.NoError(t, made.write(folder))
	require.NoError(t, s.sign(t.Context(), folder))
	return folder
}

func TestSignsARelease(t *testing.T) {
	s, public := newKey(t)
	folder := writeRelease(t, s)
	cosign := func(args ...string) error {
		command := exec.CommandContext(t.Context(), s.cosign, append(args, "--key", public, "--insecure-ignore-tlog")...)
		command.Dir = folder
		return command.Run()
	}
	sums := []string{"verify-blob", "--bundle", signatureFile, sumsFile}
	provenance := []string{"verify-blob-attestation", "--bundle", attestationFile, "--type", provenanceType, "landwaiter_0.1.0_linux_amd64"}
	require.NoError(t, cosign(sums...))
	require.NoError(t, cosign(provenance...))
	for _, name := range []string{sumsFile, "landwaiter_0.1.0_linux_amd64"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("changed"), 0o600))
	}
	require.Error(t, cosign(sums...))
	require.Error(t, cosign(provenance...))

	t.Setenv("COSIGN_PASSWORD", "wrong")
	require.Error(t, s.sign(t.Context(), folder))
}

func TestCosignAndLandwaiterVerifyTheProvenanceOfAnImage(t *testing.T) {
	s, public := newKey(t)
	_, other := newKey(t)
	folder := writeRelease(t, s)
	r := startRegistry(t, fixture.RegistryOptions{})
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	image := r.Host() + "/landwaiter/landwaiter:0.1.0"
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"push", "-layout", filepath.Join(folder, "landwaiter_0.1.0_image.oci.tar"),
		"-attestation", filepath.Join(folder, attestationFile), image}, &out, &out), &out)
	pinned := r.Host() + "/landwaiter/landwaiter@" + strings.Split(strings.TrimSpace(out.String()), "@")[1]

	blocks, err := page.Read(root, "docs/howto/verify-release.md")
	require.NoError(t, err)
	shown := slices.IndexFunc(blocks, func(b page.Block) bool { return b.Language == "yaml" && b.Name == t.Name() })
	require.NotEqual(t, -1, shown)
	verifier := blocks[shown].Text
	landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter)}
	verify := func(t *testing.T, key, verifier string) suite.Result {
		text, err := os.ReadFile(key)
		require.NoError(t, err)
		rules := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(rules, "rules.yaml"), []byte(fmt.Sprintf(`
apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: here}
spec: {registries: [%q], insecurePlainHTTP: true}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterTrustStore
metadata: {name: landwaiter-key}
spec: {type: PublicKeys, source: {inline: %q}}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: landwaiter}
spec:
  rules: [{images: ["**"], require: [{allOf: [landwaiter-provenance]}]}]
---
%s`, r.Host(), text, verifier)), 0o600))
		return landwaiter.Run(t, "", "verify", "--config-dir", rules, "-n", "team-a", image, pinned)
	}
	cosign := func(key string) error {
		return exec.CommandContext(t.Context(), s.cosign, "verify-attestation", "--key", key, "--type", provenanceType,
			"--insecure-ignore-tlog", "--allow-http-registry", pinned).Run()
	}
	require.NoError(t, cosign(public))
	verified := verify(t, public, verifier)
	require.Zero(t, verified.Code, verified.Stdout+verified.Stderr)

	require.Error(t, cosign(other))
	verified = verify(t, other, verifier)
	require.Equal(t, 1, verified.Code, verified.Stdout+verified.Stderr)
	require.Contains(t, verified.Stdout, "no key of")
	elsewhere := strings.Replace(verifier, `"git+https://github.com/landwaiter/landwaiter"`, `"git+https://github.com/example/fork"`, 1)
	require.NotEqual(t, verifier, elsewhere)
	verified = verify(t, public, elsewhere)
	require.Equal(t, 1, verified.Code, verified.Stdout+verified.Stderr)
	require.Contains(t, verified.Stdout, "does not meet the expression")
}
