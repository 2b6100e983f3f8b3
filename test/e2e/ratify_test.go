//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Templates that were written for Ratify must work against the Ratify path. The
// two in testdata have the logic of Ratify v1's default and multi-tenancy
// templates, in our own words: they look at isSuccess of each answer, at errors
// and at system errors, and know nothing of Landwaiter.
func TestTemplatesWrittenForRatifyWork(t *testing.T) {
	for name, byNamespace := range map[string]bool{"ratifystyle": false, "ratifytenants": true} {
		t.Run(name, func(t *testing.T) {
			ns, other := namespace(t), namespace(t)
			apply(t, own(ns, w.teamA))
			admitted(t, ns, w.byTeamA)
			text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			require.NoError(t, err)
			apply(t, string(text))
			constraint := fmt.Sprintf(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: %s, metadata: {name: %s},
  spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [%s, %s]}}}`, kindOf(text), name, ns, other)
			apply(t, constraint)
			t.Cleanup(func() { remove(t, constraint) })

			denies := func(namespace, image string, want bool) {
				require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
					err := try(ctx, namespace, image)
					if got := err != nil && strings.Contains(err.Error(), "["+name+"]"); got != want {
						return fmt.Errorf("denied by %s: %v, not %v: %w", name, got, want, err)
					}
					return nil
				}), "%s in %s", image, namespace)
			}
			denies(ns, w.unsigned, true)
			denies(other, w.unsigned, true)
			denies(other, w.signed, false)
			denies(ns, w.byTeamA, !byNamespace) // without a tag only the cluster's resources count
			denies(ns, "127.0.0.1:1/nobody:v1", true)
		})
	}
}

func kindOf(template []byte) string {
	objects, err := cluster.Decode(template)
	if err != nil {
		return err.Error()
	}
	kind, _, err := unstructured.NestedString(objects[0].Object, "spec", "crd", "spec", "names", "kind")
	if err != nil {
		return err.Error()
	}
	return kind
}

// remove deletes what YAML describes.
func remove(t *testing.T, text string) {
	t.Helper()
	objects, err := cluster.Decode([]byte(text))
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
	}
}
