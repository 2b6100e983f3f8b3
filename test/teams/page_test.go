//go:build e2e

package teams

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// The commands of docs/tenants.md run in its order, as a cluster admin copies them.
func TestTheCommandsOfThePageOnTeamsWork(t *testing.T) {
	gone(t, "iris-blue", "shop")
	t.Cleanup(func() {
		_ = w.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "checkout"}})
	})
	blocks, err := page.Read(root, "docs/tenants.md")
	require.NoError(t, err)
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(w.binary, filepath.Join(programs, "landwaiter")))
	runner := page.Runner{Dir: dir, Progress: t.Output(), Environment: []string{"HOME=" + dir, "KUBECONFIG=" + w.Kubeconfig(),
		"PATH=" + programs + ":" + os.Getenv("LANDWAITER_CLUSTER_TOOLS") + ":" + os.Getenv("PATH")},
		StandIns: map[string]func(context.Context, page.Block) (string, error){
			// The world of these tests has the chart with the same values.
			"guardrails": func(context.Context, page.Block) (string, error) { return "", nil },
		}}
	require.NoError(t, runner.Run(t.Context(), blocks...))
}
