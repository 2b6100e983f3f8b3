//go:build nightly

package gitops

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The page's commands turn the repository's own layout into a sound tree, with the real age-keygen and sops:
// the last command finds nothing.
func TestTheRepositoryOfTheDocumentOnTMCIsTakenOver(t *testing.T) {
	const name = "flux-tmc-multitenant"
	runner := follow(t, filepath.Join(t.TempDir(), "none"))
	dir := runner.Dir
	shape(t, dir, name)
	for _, program := range []string{"age-keygen", "sops"} {
		require.NoError(t, os.Symlink(suite.MustTool(t, suite.FluxTools, program), filepath.Join(dir, "bin", program)))
	}
	require.NoError(t, runner.Run(t.Context(), runner.own(t)...))
	for _, stays := range []string{"README.md", "CHANGELOG.md", "apps/base/contour/package-install.yml", "apps/base/external-dns/aws-creds.yml",
		"apps/base/cert-manager/package-install.yml"} {
		require.FileExists(t, filepath.Join(dir, name, stays))
	}
	text, err := os.ReadFile(filepath.Join(dir, name, "apps/clusters/eks.eks-warroyo2.us-west-2.iris-dev/kustomization.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "../../base/external-dns", "what the cluster had")

	// Flux decrypts with the key that the page creates.
	const values = "apps/base/contour/values.yml"
	out, err := runner.Bash(t.Context(), "SOPS_AGE_KEY_FILE=age.key sops decrypt "+name+"/"+values)
	require.NoError(t, err, out)
	require.Equal(t, "namespace: contour\n", out)

	// Without the repairs, the check does not pass: each is there for a reason.
	require.NoError(t, os.WriteFile(filepath.Join(dir, name, values), []byte("namespace: contour\n"), 0o600))
	out, err = runner.Bash(t.Context(), "landwaiter platform check "+name)
	require.Error(t, err)
	require.Contains(t, out, "apps/base/contour/kustomization.yml: error PlainTextSecret")
}
