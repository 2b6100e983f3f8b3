//go:build e2e

package inspect

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands of docs/howto/preview.md run in its order, as an admin copies them.
func TestTheCommandsOfThePageOnPreviewsWork(t *testing.T) {
	w := withExamples(t)
	t.Cleanup(func() {
		meta := func(namespace, name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: namespace, Name: name}
		}
		for _, made := range []client.Object{
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "platform-reader")}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "platform-cluster-reader")},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "platform-tenant-reader")}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "team-a-cluster-reader")},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "team-a-tenant-reader")}, &rbacv1.RoleBinding{ObjectMeta: meta("team-a", "team-a-reader")},
			&rbacv1.RoleBinding{ObjectMeta: meta("team-a", "registry-login-reader")},
			&rbacv1.Role{ObjectMeta: meta("team-a", "registry-login-reader")},
		} {
			_ = w.Client.Delete(context.Background(), made)
		}
	})
	blocks, err := page.Read(suite.Root, "docs/howto/preview.md")
	require.NoError(t, err)
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	binary, err := filepath.Abs(suite.MustTool(t, suite.Landwaiter))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(binary, filepath.Join(programs, "landwaiter")))
	runner := page.Runner{Dir: dir, Progress: t.Output(), Environment: []string{"HOME=" + dir, "KUBECONFIG=" + w.Kubeconfig(),
		"PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")},
		Substitutions: []page.Substitution{{Page: "registry.example.com", Test: w.Registry.Host(), Why: "the registry of the tests"}}}
	require.NoError(t, runner.Run(t.Context(), blocks...))
}
