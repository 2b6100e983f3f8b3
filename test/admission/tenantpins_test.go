//go:build e2e

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Whatever the namespace of the pod, Gatekeeper asks with the path of the home namespace.
func TestTagsOfATeamArePinnedWithTheStoresOfItsHome(t *testing.T) {
	w := installed(t)
	home, member, other := w.namespace(t), w.namespace(t), w.namespace(t)
	image, err := w.push(t.Context(), "teams/app", w.platform)
	require.NoError(t, err)
	plan := w.mutation(t).Plan([]onboard.Pinning{
		{Namespace: home, Tenant: tenantOf("pinning", home), Pin: true, Stores: true},
		{Namespace: member, Tenant: tenantOf("pinning", home), Pin: true},
		{Namespace: other},
	}, false, []string{"kube-system"}, 1)
	// The chart keeps the base set here.
	scoped := slices.DeleteFunc(plan.Objects, func(o *unstructured.Unstructured) bool {
		return !strings.HasPrefix(o.GetName(), "landwaiter-tenant-")
	})
	require.Len(t, scoped, 4)
	require.NoError(t, w.Apply(suite.Within(t), scoped...))
	t.Cleanup(func() {
		for _, object := range scoped {
			require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
		}
	})
	for _, ns := range []string{home, member} {
		require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error {
			made := suite.Pod(ns, "probe", image)
			if err := w.Client.Create(ctx, made, client.DryRunAll); err != nil {
				return err
			}
			if !strings.HasPrefix(made.Spec.Containers[0].Image, image+"@sha256:") {
				return fmt.Errorf("%s is not pinned", made.Spec.Containers[0].Image)
			}
			return nil
		}), ns)
	}
	made := suite.Pod(other, "probe", image)
	require.NoError(t, w.Client.Create(suite.Within(t), made, client.DryRunAll))
	require.Equal(t, image, made.Spec.Containers[0].Image, "no other namespace is pinned")

	// A Store in the home namespace that cannot be used shows whose Stores are asked.
	w.apply(t, "{apiVersion: landwaiter.dev/v1beta1, kind: Store, metadata: {name: login, namespace: "+home+"}, spec: {registries: [\""+w.Registry.Host()+
		"\"], imagePullSecrets: [{name: gone}]}}")
	for _, ns := range []string{home, member} {
		var last error
		require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error {
			if last = w.Client.Create(ctx, suite.Pod(ns, "probe", image), client.DryRunAll); last == nil || !strings.Contains(last.Error(), home+"/login") ||
				!strings.Contains(last.Error(), "landwaiter-tenant-pinning") {
				return fmt.Errorf("the Store of the home namespace is not asked: %w", last)
			}
			return nil
		}), "%s: %v", ns, last)
	}
	require.NoError(t, w.try(suite.Within(t), other, image))
}
