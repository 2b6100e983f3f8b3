package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// A backup tool restores statuses, and anyone who may write a status may forge one. What another
// manager owns, an apply does not remove; the writer must neither leave it there nor write for ever.
func TestWhatOthersWroteIntoStatusesIsRemovedOnce(t *testing.T) {
	for name, forge := range map[string]func(*v1beta1.TrustStoreStatus){
		"fields": func(status *v1beta1.TrustStoreStatus) {
			fetched := metav1.NewTime(time.Now().Truncate(time.Second))
			status.FetchedAt, status.Fingerprints = &fetched, []string{"sha256:feed"}
		},
		"a condition of ours": func(status *v1beta1.TrustStoreStatus) {
			meta.SetStatusCondition(&status.Conditions,
				metav1.Condition{Type: v1beta1.ConditionExpiresSoon, Status: metav1.ConditionTrue, Reason: "Forged", Message: "forged"})
			meta.SetStatusCondition(&status.Conditions,
				metav1.Condition{Type: "example.com/Seen", Status: metav1.ConditionTrue, Reason: "Seen", Message: "of another writer"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { forgedStatuses(t, forge) })
		})
	}
}

// applied fills in what an API server answers to an apply, which the fake client leaves out.
func applied(ctx context.Context, api client.Client, subresource string, configuration runtime.ApplyConfiguration,
	options ...client.SubResourceApplyOption) error {
	if err := api.SubResource(subresource).Apply(ctx, configuration, options...); err != nil {
		return err
	}
	answer := &unstructured.Unstructured{}
	text, err := json.Marshal(configuration)
	if err == nil {
		err = answer.UnmarshalJSON(text)
	}
	if err == nil {
		err = api.Get(ctx, client.ObjectKeyFromObject(answer), answer)
	}
	if err == nil {
		text, err = answer.MarshalJSON()
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, configuration)
}

func forgedStatuses(t *testing.T, forge func(*v1beta1.TrustStoreStatus)) {
	t.Helper()
	objects := []client.Object{team("team-a")}
	for i := range statusesAtOnce + 8 {
		objects = append(objects, &v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("t-%03d", i)}})
	}
	b := newBench(t, interceptor.Funcs{SubResourceApply: applied}, objects...)
	b.reconcile(t, verify.Cluster)
	for _, o := range objects[1:] {
		store := &v1beta1.TrustStore{}
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(o), store))
		before := store.DeepCopy()
		forge(&store.Status)
		require.NoError(t, b.api.Status().Patch(t.Context(), store, client.MergeFrom(before), client.FieldOwner("restore")))
	}
	w, turns := newStatusWriter(b.Controller), 0
	for more := true; more && turns < 50; turns++ {
		var err error
		more, err = w.write(t.Context(), "team-a")
		require.NoError(t, err)
	}
	require.Less(t, turns, 5)
	for _, o := range objects[1:] {
		store := &v1beta1.TrustStore{}
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(o), store))
		require.Nil(t, store.Status.FetchedAt)
		require.Empty(t, store.Status.Fingerprints)
		require.NotNil(t, meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionReady))
		expires := meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionExpiresSoon)
		require.True(t, expires == nil || expires.Reason != "Forged")
	}
}
