//go:build e2e

package teams

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// pieces renders the chart with all pieces, and returns the ClusterRole of each.
func pieces(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	var names []string
	for name := range pieced() {
		names = append(names, name)
	}
	rendered, err := suite.Chart(suite.Within(t), "landwaiter", "--show-only", "templates/personas.yaml", "--set",
		"reconciler.pieces={"+strings.Join(names, ",")+"}")
	require.NoError(t, err)
	roles := map[string]*unstructured.Unstructured{}
	for _, object := range rendered {
		if name, ok := strings.CutPrefix(object.GetName(), "landwaiter-reconciler-"); ok && name != "base" {
			roles[name] = object
		}
	}
	require.Len(t, roles, len(names), "a piece of the chart has no test, or the other way round")
	return roles
}

// forbidden returns nil if permissions refuse a request.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot create resource ") {
		return nil
	}
	return fmt.Errorf("not refused by permissions: %w", err)
}

// Without its piece an account may keep none of the kinds, with it each of them in the team's own namespaces.
func TestAPieceLetsAccountsKeepItsKindsInTheirOwnNamespaces(t *testing.T) {
	w := attacked(t)
	account := w.as(t, green())
	for name, role := range pieces(t) {
		t.Run(name, func(t *testing.T) {
			each := func(namespace string, of func(error) error) func(context.Context) error {
				return func(ctx context.Context) error {
					for _, s := range pieced()[name] {
						if err := of(create("{apiVersion: %s/%s, kind: %s, metadata: {namespace: %s, name: x}, spec: {secretName: x}}", s.group, s.version, s.kind,
							namespace)(ctx, account)); err != nil {
							return fmt.Errorf("%s in %s: %w", s.kind, namespace, err)
						}
					}
					return nil
				}
			}
			require.NoError(t, each("iris-green-web", forbidden)(suite.Within(t)))
			w.planted(t, role)
			granted := func(err error) error { return err }
			suite.Eventually(t, each("iris-green", granted))
			suite.Eventually(t, each("iris-green-web", granted))
			require.NoError(t, each("iris-red-web", forbidden)(suite.Within(t)))
			require.NoError(t, w.Client.Delete(suite.Within(t), role.DeepCopy()))
			suite.Eventually(t, each("iris-green-web", forbidden))
		})
	}
}

// The samples of the library are what the account may apply.
func TestTheAccountAppliesTheSamplesOfThePieces(t *testing.T) {
	w := attacked(t)
	account := w.as(t, green())
	roles := pieces(t)
	for sample, piece := range map[string]string{"csi-provider-class": "secret-provider-classes", "flux-image-automation": "flux-images"} {
		t.Run(sample, func(t *testing.T) {
			objects, err := cluster.DecodeFile(suite.Root + "/library/samples/" + sample + ".yaml")
			require.NoError(t, err)
			objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "GitRepository" })
			require.NotEmpty(t, objects)
			try := func(of func(error) error) func(context.Context) error {
				return func(ctx context.Context) error {
					for _, object := range objects {
						if err := of(create("%s", text(t, object))(ctx, account)); err != nil {
							return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
						}
					}
					return nil
				}
			}
			require.NoError(t, try(forbidden)(suite.Within(t)))
			w.planted(t, roles[piece])
			suite.Eventually(t, try(func(err error) error { return err }))
		})
	}
}

// text returns an object as JSON.
func text(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	made, err := object.MarshalJSON()
	require.NoError(t, err)
	return string(made)
}
