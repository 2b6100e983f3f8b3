//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/onboard"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// limited renders the constraint of a Tenant, and makes its kind known by the template of
// the library.
func limited(t *testing.T, tenant, home string, prefixes ...string) *unstructured.Unstructured {
	t.Helper()
	template, err := cluster.DecodeFile("../../library/tenant-allowed-registries/template.yaml")
	require.NoError(t, err)
	require.NoError(t, w.Apply(within(t), template...))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), template[0]); err != nil {
			t.Errorf("delete the template: %v", err)
		}
	})
	team := tenantOf(tenant, home)
	team.Spec.Isolation.Registries = prefixes
	objects, err := onboard.Objects(team, onboard.Options{Constraints: true})
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() == onboard.KindRegistries {
			return object
		}
	}
	require.Fail(t, "the Tenant has no constraint")
	return nil
}

func TestATeamUsesImagesOfItsRegistriesAlone(t *testing.T) {
	home, other := namespace(t), namespace(t)
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}
	require.NoError(t, w.Client.Patch(within(t), labelled, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:"limited"}}}`, v1alpha1.LabelTenant))))
	own, err := w.push(t.Context(), "limited/app", w.platform)
	require.NoError(t, err)
	lookalike, err := w.push(t.Context(), "limited-by-others/app", w.platform)
	require.NoError(t, err)
	rendered := limited(t, "limited", home, w.Registry.Host()+"/limited/")
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { // Gatekeeper makes the kind from the template
		return w.Client.Create(ctx, rendered.DeepCopy())
	}))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), rendered.DeepCopy()); err != nil {
			t.Errorf("delete the constraint: %v", err)
		}
	})
	live := rendered.DeepCopy()
	require.NoError(t, w.Client.Get(within(t), client.ObjectKeyFromObject(rendered), live))
	require.Equal(t, rendered.Object["spec"], live.Object["spec"], "the operator's fence expects the shape that is rendered")

	refuses := func(err error) error {
		if err == nil || !strings.Contains(err.Error(), "[limited]") {
			return fmt.Errorf("the constraint did not refuse: %w", err)
		}
		return nil
	}
	for _, image := range []string{lookalike, w.signed} {
		require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { return refuses(try(ctx, home, image)) }), image)
	}
	require.NoError(t, try(t.Context(), home, own))
	require.NoError(t, try(t.Context(), other, lookalike), "other teams have other lists")

	// A container for debugging comes by a subresource of a pod that runs.
	running := pod(home, "running", own)
	require.NoError(t, w.Client.Create(within(t), running))
	debug := func(image string) error {
		changed := running.DeepCopy()
		changed.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: image, TerminationMessagePolicy: corev1.TerminationMessageReadFile}}}
		return w.Client.SubResource("ephemeralcontainers").Update(within(t), changed, client.DryRunAll)
	}
	require.NoError(t, refuses(debug(lookalike)))
	require.NoError(t, debug(own))
}
