//go:build e2e

package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// limited renders the constraint of a Tenant, and makes its kind known by the template of
// the library.
func (w *world) limited(t *testing.T, tenant, home string, prefixes ...string) *unstructured.Unstructured {
	t.Helper()
	template, err := cluster.DecodeFile("../../library/tenant-allowed-registries/template.yaml")
	require.NoError(t, err)
	require.NoError(t, w.Apply(suite.Within(t), template...))
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
	w := installed(t)
	home, other := w.namespace(t), w.namespace(t)
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}
	require.NoError(t,
		w.Client.Patch(suite.Within(t), labelled,
			client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:"limited"}}}`, v1beta1.LabelTenant))))
	own, err := w.push(t.Context(), "limited/app", w.platform)
	require.NoError(t, err)
	lookalike, err := w.push(t.Context(), "limited-by-others/app", w.platform)
	require.NoError(t, err)
	rendered := w.limited(t, "limited", home, w.Registry.Host()+"/limited/")
	suite.Eventually(t, func(ctx context.Context) error { // Gatekeeper makes the kind from the template
		return w.Client.Create(ctx, rendered.DeepCopy())
	})
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), rendered.DeepCopy()); err != nil {
			t.Errorf("delete the constraint: %v", err)
		}
	})
	live := rendered.DeepCopy()
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(rendered), live))
	require.Equal(t, rendered.Object["spec"], live.Object["spec"], "the operator guardrail expects the shape that is rendered")

	for _, image := range []string{lookalike, w.signed} {
		require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error { return deniedBy(w.try(ctx, home, image), "limited") }), image)
	}
	require.NoError(t, w.try(t.Context(), home, own))
	require.NoError(t, w.try(t.Context(), other, lookalike), "other teams have other lists")

	// A subresource of a running pod adds a container for debugging.
	running := suite.Pod(home, "running", own)
	require.NoError(t, w.Client.Create(suite.Within(t), running))
	_, err = w.debug(t, running, lookalike, client.DryRunAll)
	require.NoError(t, deniedBy(err, "limited"))
	_, err = w.debug(t, running, own, client.DryRunAll)
	require.NoError(t, err)
}
