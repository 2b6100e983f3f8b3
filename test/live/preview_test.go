//go:build e2e

package live

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// stricter denies everywhere what team-b and team-c run.
func stricter() string {
	return `
apiVersion: landwaiter.dev/v1alpha1
kind: ClusterVerificationPolicy
metadata: {name: only-app}
spec:
  scope: Floor
  rules:
  - images: ["` + w.image("shared/app") + `"]
    action: Allow
`
}

func TestAClusterAdminSeesWhatAStricterRuleWouldDeny(t *testing.T) {
	admin := somebody(t, "platform", map[string][]string{"": {"landwaiter-previewer"}})
	printed, rows, r := admin.previews(t, stricter(), "-A")
	require.Equal(t, 1, r.code, r.stderr)
	require.Equal(t, []string{"team-b shared/web:v1: allowed -> denied", "team-c shared/base:v1: allowed -> denied"}, rows)
	require.Equal(t, 2, printed.Breaks)
	require.Contains(t, printed.Images[0].To.Reason, "ClusterVerificationPolicy only-app")
	require.Equal(t, []string{"Pod/web"}, printed.Images[0].Used)
	t.Log(admin.runs(t, stricter(), "preview", "-f", "-", "-A").stdout)
}
