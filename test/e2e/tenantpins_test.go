//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/onboard"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// mutation is that of the chart's Provider, with the certificate as rotation keeps it.
func mutation(t *testing.T) onboard.Mutation {
	t.Helper()
	provider := &unstructured.Unstructured{}
	provider.SetAPIVersion("externaldata.gatekeeper.sh/v1beta1")
	provider.SetKind("Provider")
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "landwaiter-mutate"}, provider))
	url, _, err := unstructured.NestedString(provider.Object, "spec", "url")
	require.NoError(t, err)
	encoded, _, err := unstructured.NestedString(provider.Object, "spec", "caBundle")
	require.NoError(t, err)
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	return onboard.Mutation{ProviderURL: strings.TrimSuffix(url, "/v1/mutate"), CABundle: bundle}
}

func tenantOf(name, home string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{Home: home}}
}

// Whatever the namespace of the pod, Gatekeeper asks with the path of home.
func TestTagsOfATeamArePinnedWithTheStoresOfItsHome(t *testing.T) {
	if os.Getenv("LANDWAITER_WITHOUT_PINNING") != "" {
		t.Skip("this Gatekeeper is older than pinning")
	}
	home, member, other := namespace(t), namespace(t), namespace(t)
	image, err := w.push(t.Context(), "teams/app", w.platform)
	require.NoError(t, err)
	plan := mutation(t).Plan([]onboard.Pinning{
		{Namespace: home, Tenant: tenantOf("pinning", home), Pin: true, Stores: true},
		{Namespace: member, Tenant: tenantOf("pinning", home), Pin: true},
		{Namespace: other},
	}, false, []string{"kube-system"}, 1)
	// The chart keeps the base set here.
	scoped := slices.DeleteFunc(plan.Objects, func(o *unstructured.Unstructured) bool {
		return !strings.HasPrefix(o.GetName(), "landwaiter-tenant-")
	})
	require.Len(t, scoped, 4)
	require.NoError(t, w.Apply(within(t), scoped...))
	t.Cleanup(func() {
		for _, object := range scoped {
			require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
		}
	})
	for _, ns := range []string{home, member} {
		require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
			made := pod(ns, "probe", image)
			if err := w.Client.Create(ctx, made, client.DryRunAll); err != nil {
				return err
			}
			if !strings.HasPrefix(made.Spec.Containers[0].Image, image+"@sha256:") {
				return fmt.Errorf("%s is not pinned", made.Spec.Containers[0].Image)
			}
			return nil
		}), ns)
	}
	made := pod(other, "probe", image)
	require.NoError(t, w.Client.Create(within(t), made, client.DryRunAll))
	require.Equal(t, image, made.Spec.Containers[0].Image, "no other namespace is pinned")

	// A Store in home that cannot be used shows whose Stores are asked.
	apply(t, "{apiVersion: landwaiter.dev/v1alpha1, kind: Store, metadata: {name: login, namespace: "+home+"}, spec: {registries: [\""+w.Registry.Host()+"\"], imagePullSecrets: [{name: gone}]}}")
	for _, ns := range []string{home, member} {
		var last error
		require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
			if last = w.Client.Create(ctx, pod(ns, "probe", image), client.DryRunAll); last == nil || !strings.Contains(last.Error(), home+"/login") || !strings.Contains(last.Error(), "landwaiter-tenant-pinning") {
				return fmt.Errorf("the Store of home is not asked: %w", last)
			}
			return nil
		}), "%s: %v", ns, last)
	}
	require.NoError(t, try(within(t), other, image))
}
