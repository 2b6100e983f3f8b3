package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// The README's resources are the first that a newcomer copies: they must be read
// and compiled without a word of complaint.
func TestTheResourcesInTheReadmeAreGood(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	var resources string
	for _, block := range strings.Split(string(readme), "```yaml\n")[1:] {
		text, _, closed := strings.Cut(block, "```")
		require.True(t, closed)
		if strings.Contains(text, "landwaiter.dev/") {
			resources += text + "---\n"
		}
	}
	require.Contains(t, resources, "kind: VerificationPolicy")
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	// What the README takes for granted.
	secrets := "apiVersion: v1\nkind: Secret\nmetadata: {name: cosign-pub, namespace: team-a}\nstringData:\n  cosign.pub: " + block(string(key.PEM), 4) +
		"\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: team-a}\nstringData:\n  .dockerconfigjson: '{\"auths\":{\"registry.example.com\":{\"username\":\"u\",\"password\":\"p\"}}}'\n"
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme.yaml"), []byte(resources+secrets), 0o600))
	var complaints bytes.Buffer
	flags := engineFlags{configDir: dir}
	d, _, err := flags.load(t.Context(), &complaints)
	require.NoError(t, err)
	d.client.Close()
	require.Empty(t, complaints.String())
}
