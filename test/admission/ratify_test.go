//go:build e2e

package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Templates that were written for Ratify must work against the Ratify path. The
// two in testdata have the logic of Ratify v1's default and multi-tenancy
// templates, in our own words: they look at isSuccess of each answer, at errors
// and at system errors, and know nothing of Landwaiter.
func TestTemplatesWrittenForRatifyWork(t *testing.T) {
	w := installed(t)
	for name, byNamespace := range map[string]bool{"ratifystyle": false, "ratifytenants": true} {
		t.Run(name, func(t *testing.T) {
			ns, other := w.namespace(t), w.namespace(t)
			w.apply(t, own(ns, w.teamA))
			w.admitted(t, ns, w.byTeamA)
			text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			require.NoError(t, err)
			w.apply(t, string(text))
			constraint := fmt.Sprintf(`{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: %s, metadata: {name: %s},
  spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [%s, %s]}}}`, kindOf(text), name, ns, other)
			w.during(t, constraint)

			denies := func(namespace, image string, want bool) {
				require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error {
					err := w.try(ctx, namespace, image)
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
