//go:build e2e

package inspect

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The API server keeps a binding for one Tenant, and takes the command that each form of check prints.
func TestAGuardrailForOneTenantIsFoundAndMendedByItsCommand(t *testing.T) {
	w := installed(t)
	kubectl := suite.MustTool(t, suite.ClusterTools, "kubectl")
	sh := func(line string) {
		t.Helper()
		command := exec.CommandContext(suite.Within(t), "sh", "-c", line)
		command.Env = []string{"PATH=" + filepath.Dir(kubectl) + ":/usr/bin:/bin", "KUBECONFIG=" + w.Kubeconfig(), "HOME=" + t.TempDir()}
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, output)
	}
	commands := func(form ...string) (found []string) {
		t.Helper()
		r := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Kubeconfig: w.Kubeconfig()}.Run(t, "", append([]string{"check", "--output=json"}, form...)...)
		var printed struct {
			Findings []struct{ ID, Command string }
		}
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &printed), "%s%s", r.Stdout, r.Stderr)
		for _, f := range printed.Findings {
			if f.ID == "GuardrailNotDeny" {
				found = append(found, f.Command)
			}
		}
		return found
	}
	require.Empty(t, commands())
	for name, patch := range map[string]string{
		"by its name":   `{"spec":{"paramRef":{"name":"iris-green","selector":null}}}`,
		"by its labels": `{"spec":{"paramRef":{"selector":{"matchLabels":{"team":"iris-green"}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			sh("kubectl patch validatingadmissionpolicybinding landwaiter-namespace-names --type=merge --patch='" + patch + "'")
			printed := commands()
			require.Len(t, printed, 1)
			require.Equal(t, printed, commands("--tenants"))
			require.Equal(t, printed, commands("--isolation"))
			sh(printed[0])
			require.Empty(t, commands())
		})
	}
}
