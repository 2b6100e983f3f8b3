//go:build e2e

package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// The page's commands turn the repository's own layout into a sound tree: the last one finds
// nothing. sops and age-keygen are played, because their programs are built for nightly tests only.
func TestTheRepositoryOfTheDocumentOnTMCIsTakenOver(t *testing.T) {
	runner := follow(t, filepath.Join(t.TempDir(), "none"))
	name, dir := takeOverTMC(t, runner), runner.Dir
	for _, stays := range []string{"README.md", "CHANGELOG.md", "apps/base/contour/package-install.yml", "apps/base/external-dns/aws-creds.yml", "apps/base/cert-manager/package-install.yml"} {
		require.FileExists(t, filepath.Join(dir, name, stays))
	}
	text, err := os.ReadFile(filepath.Join(dir, name, "apps/clusters/eks.eks-warroyo2.us-west-2.iris-dev/kustomization.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "../../base/external-dns", "what the cluster had")

	// Without the repairs, the check does not pass: each is there for a reason.
	require.NoError(t, os.WriteFile(filepath.Join(dir, name, "apps/base/contour/values.yml"), []byte("namespace: contour\n"), 0o600))
	out, err := runner.Bash(t.Context(), "landwaiter platform check "+name)
	require.Error(t, err)
	require.Contains(t, out, "apps/base/contour/kustomization.yml: error PlainTextSecret")
}

// takeOverTMC runs the page's commands on a copy of the repository, whose folder it returns.
func takeOverTMC(t *testing.T, reader *followed) string {
	t.Helper()
	const name, sealed = "flux-tmc-multitenant", "ENC[AES256_GCM,data:aGVsbG8=,iv:aXY=,tag:dGFn,type:str]"
	shape(t, reader.Dir, name)
	reader.play(t, "age-keygen", "echo age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n")
	reader.play(t, "sops", "for file; do :; done\nprintf 'values: "+sealed+"\\nsops: {mac: \""+sealed+"\"}\\n' > \"$file\"\n")
	runner := *reader.Runner
	runner.Test = "TestTheRepositoryOfTheDocumentOnTMCIsTakenOver" // as the page has it
	own := slices.DeleteFunc(slices.Clone(reader.blocks), func(b page.Block) bool { return b.Mark != page.By || b.Name != runner.Test })
	require.NotEmpty(t, own, "the page names another test")
	require.NoError(t, runner.Run(t.Context(), own...))
	return name
}
