//go:build e2e

package install

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/library"
	"github.com/landwaiter/landwaiter/test/kit/page"
)

// enforcing are the constraints among objects that do not only report.
func enforcing(t *testing.T, objects []*unstructured.Unstructured) (constraints, others []string) {
	t.Helper()
	for _, object := range objects {
		if object.GroupVersionKind().Group != "constraints.gatekeeper.sh" {
			others = append(others, object.GetKind())
			continue
		}
		action, _, err := unstructured.NestedString(object.Object, "spec", "enforcementAction")
		require.NoError(t, err)
		if constraints = append(constraints, action); action == "" {
			require.Fail(t, object.GetName()+" denies from the start")
		}
	}
	slices.Sort(constraints)
	return slices.Compact(constraints), others
}

// The files are those that programs carry.
func TestTheSetsOfTheLibraryBuildAndCanDeny(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "library"), library.Files))
	for _, template := range build(t, filepath.Join(dir, "library")) {
		require.Equal(t, "ConstraintTemplate", template.GetKind())
	}
	sets, err := filepath.Glob(filepath.Join(dir, "library/constraints/*"))
	require.NoError(t, err)
	require.NotEmpty(t, sets)
	for _, set := range sets {
		actions, others := enforcing(t, build(t, set))
		require.Equal(t, []string{"dryrun"}, actions, set)
		require.Subset(t, []string{"SyncSet"}, others, set)
	}
	blocks, err := page.Read(root, "library/README.md")
	require.NoError(t, err)
	at := slices.IndexFunc(blocks, func(b page.Block) bool { return b.Language == "yaml" })
	require.GreaterOrEqual(t, at, 0)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(blocks[at].Text), 0o600))
	actions, _ := enforcing(t, build(t, dir))
	require.Equal(t, []string{"warn"}, actions)
}
