//go:build e2e

package controller_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// another applies a condition of its own, as the operator does.
func another(t *testing.T, running *cluster.Cluster, object client.Object) {
	t.Helper()
	kind, err := running.Client.GroupVersionKindFor(object)
	require.NoError(t, err)
	applied := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": v1beta1.ConditionProvisioned, "status": "True", "reason": "Provisioned", "message": "all is there", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}}}
	applied.SetGroupVersionKind(kind)
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	require.NoError(t, running.Client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("landwaiter-operator"),
		client.ForceOwnership))
}

// owners are the field managers of a status.
func owners(object client.Object) []string {
	var found []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" {
			found = append(found, fmt.Sprintf("%s %s", entry.Operation, entry.Manager))
		}
	}
	return found
}

func TestAStatusHasTwoWritersAndNeitherTakesFromTheOther(t *testing.T) {
	running := running(t)
	team := namespace(t, running, "team")
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	store := &v1beta1.TrustStore{ObjectMeta: labelled(team, "keys")}
	store.Spec.Type, store.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, string(key.PEM)
	require.NoError(t, running.Client.Create(t.Context(), store))

	another(t, running, store)

	current := func(ctx context.Context) error {
		read := &v1beta1.TrustStore{} // decoding keeps what a struct has already
		if err := running.Client.Get(ctx, client.ObjectKeyFromObject(store), read); err != nil {
			return err
		}
		store = read
		if ready := meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue ||
			ready.ObservedGeneration != store.Generation {
			return fmt.Errorf("the condition is %+v", ready)
		}
		return nil
	}
	run(t, running.Config, controller.Options{})
	eventually(t, current)
	require.Equal(t, []string{key.Fingerprint}, store.Status.Fingerprints)
	require.Equal(t, string(policy.ReasonUnused), meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionEffective).Reason)
	require.True(t, meta.IsStatusConditionTrue(store.Status.Conditions, v1beta1.ConditionProvisioned), "another's condition stays")
	require.Subset(t, owners(store), []string{"Apply landwaiter", "Apply landwaiter-operator"})

	// From now on both write again and again, and neither takes from the other.
	second, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	store.Spec.Source.Inline = string(second.PEM)
	require.NoError(t, running.Client.Update(t.Context(), store))
	eventually(t, current)
	another(t, running, store)
	require.NoError(t, current(t.Context()))
	require.Equal(t, []string{second.Fingerprint}, store.Status.Fingerprints)
	require.Len(t, store.Status.Conditions, 4)
}
