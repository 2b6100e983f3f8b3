//go:build e2e || nightly

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// writesRules follows docs/teams/write-rules.md with a key of the team's own, from no rule to a pod that is denied and
// one that is admitted.
func (r *reader) writesRules(t *testing.T) {
	t.Helper()
	const rules = "docs/teams/write-rules.md"
	r.bash(t, "landwaiter tenant add iris-blue --set namespaces=iris-blue-web\nmkdir iris")
	read, err := page.Read(root, rules)
	require.NoError(t, err)
	blocks := map[string][]page.Block{}
	for _, b := range read {
		blocks[b.Section] = append(blocks[b.Section], b)
	}
	const inTeams = "cd iris\n"
	r.bash(t, inTeams+blocks["1. Create a key"][0].Text)
	public, err := os.ReadFile(filepath.Join(r.runner.Dir, "iris/cosign.pub"))
	require.NoError(t, err)
	resources := blocks["2. Write three resources"][0]
	require.Equal(t, "yaml", resources.Language)
	own := regexp.MustCompile(`(?s) *-----BEGIN PUBLIC KEY-----.*-----END PUBLIC KEY-----\n`).
		ReplaceAllString(resources.Text, "      "+strings.ReplaceAll(strings.TrimSpace(string(public)), "\n", "\n      ")+"\n")
	require.NotEqual(t, resources.Text, own)
	require.NoError(t,
		os.WriteFile(filepath.Join(r.runner.Dir, "iris/iris-blue-trust.yaml"), []byte(strings.ReplaceAll(own, "registry.example.com", r.registry.Host())), 0o600))
	r.bash(t, inTeams+blocks["3. Find mistakes"][0].Text)
	r.bash(t, inTeams+blocks["4. See what would be denied"][0].Text)
	applied := blocks["5. Apply the rule"]
	r.bash(t, inTeams+applied[0].Text)
	suite.Eventually(t, func(context.Context) error {
		if shown := r.bash(t, inTeams+applied[1].Text); strings.Count(shown, "True") < 6 { // READY and EFFECTIVE of three
			return errors.New(shown)
		}
		return nil
	})

	verify, sign := blocks["6. Sign an image"][0], blocks["6. Sign an image"][1]
	said, err := r.runner.Bash(t.Context(), inTeams+verify.Text)
	require.Error(t, err)
	require.Contains(t, said, "DENIED")
	command := regexp.MustCompile(`cosign sign --key \S+ --use-signing-config=false --tlog-upload=false \S+@sha256:[0-9a-f]{64}`).FindString(said)
	require.NotEmpty(t, command, said)
	before, _, _ := strings.Cut(sign.Text, "@")
	require.Equal(t, strings.ReplaceAll(before, "registry.example.com", r.registry.Host()),
		strings.Replace(strings.Split(command, "@")[0], "--key KEY", "--key cosign.key", 1), "the page shows the command that the output ends with")
	dryRun := blocks["7. See it in the cluster"][0]
	denied, err := r.runner.Bash(t.Context(), inTeams+strings.Replace(dryRun.Text, "iris-blue/web:v1", "iris-blue/unsigned:v1", 1))
	require.Error(t, err)
	require.Contains(t, denied, "VerificationPolicy iris-blue/images")
	require.NotContains(t, denied, "PodSecurity")
	r.bash(t, inTeams+strings.Replace(command, "--key KEY", "--key cosign.key", 1))
	suite.Eventually(t, func(ctx context.Context) error { // denials are cached
		shown, err := r.runner.Bash(ctx, inTeams+verify.Text)
		if err != nil || !strings.Contains(shown, "ALLOWED") {
			return fmt.Errorf("%s: %w", shown, err)
		}
		return nil
	})
	suite.Eventually(t, func(ctx context.Context) error {
		shown, err := r.runner.Bash(ctx, inTeams+dryRun.Text)
		if err != nil || !strings.Contains(shown, "pod/try created (server dry run)") {
			return fmt.Errorf("%s: %w", shown, err)
		}
		return nil
	})
	r.bash(t, "landwaiter tenant delete iris-blue --delete-namespaces --yes")
}
