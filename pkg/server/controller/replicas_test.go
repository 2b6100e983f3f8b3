//go:build e2e

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestAnotherReplicaWritesStatusesWhenOneEnds(t *testing.T) {
	running := running(t)
	system, team := namespace(t, running, "landwaiter-system"), namespace(t, running, "team")
	options := controller.Options{OwnNamespace: system, LeaderElection: true}
	first, stop := run(t, running.Config, options)
	second, _ := run(t, running.Config, options)
	eventually(t, func(context.Context) error { return errors.Join(first.Ready(), second.Ready()) })

	store := &v1beta1.Store{ObjectMeta: labelled(team, "registry"), Spec: v1beta1.StoreSpec{Registries: []string{"registry.example.com"}}}
	require.NoError(t, running.Client.Create(t.Context(), store))
	ready := func(ctx context.Context) error {
		if err := running.Client.Get(ctx, client.ObjectKeyFromObject(store), store); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionReady)
		if condition == nil || condition.ObservedGeneration != store.Generation {
			return fmt.Errorf("the condition is %+v", condition)
		}
		return nil
	}
	eventually(t, ready)
	stop()
	store.Spec.Registries = []string{"another.example.com"}
	require.NoError(t, running.Client.Update(t.Context(), store))
	t.Logf("the other replica wrote after %s", eventually(t, ready))
}

func TestMaterialFromElsewhereIsFetchedAndShownInTheStatus(t *testing.T) {
	running := running(t)
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	system, team := namespace(t, running, "landwaiter-system"), namespace(t, running, "team")
	var content atomic.Pointer[[]byte]
	asked := make(chan external.Source, 1000)
	keeper := external.New(external.Options{Refresh: 20 * time.Millisecond, Hosts: []string{"vault.example.com"}, Fetch: map[external.Kind]external.Fetch{
		external.VaultKeys: func(_ context.Context, source external.Source) (external.Content, error) {
			select {
			case asked <- source:
			default:
			}
			if text := content.Load(); text != nil {
				return external.Content{Bytes: *text}, nil
			}
			return external.Content{}, errors.New("it is sealed")
		}}}, time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- keeper.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	run(t, running.Config, controller.Options{OwnNamespace: system, External: keeper})

	require.NoError(t,
		running.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: labelled(team, "vault"), Data: map[string][]byte{"token": []byte("hvs.secret")}}))
	store := &v1beta1.TrustStore{ObjectMeta: labelled(team, "keys"), Spec: v1beta1.TrustStoreSpec{Type: v1beta1.TrustStoreTypePublicKeys,
		Source: v1beta1.TrustSource{Vault: &v1beta1.VaultSource{Address: "https://vault.example.com", Path: "transit/keys/release",
			TokenSecretKeyRef: &v1beta1.KeyReference{Name: "vault", Key: "token"}}}}}
	require.NoError(t, running.Client.Create(t.Context(), store))
	shows := func(status metav1.ConditionStatus, fingerprints int) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := running.Client.Get(ctx, client.ObjectKeyFromObject(store), store); err != nil {
				return err
			}
			condition := meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionReady)
			if condition == nil || condition.Status != status {
				return fmt.Errorf("the condition is %+v", condition)
			}
			if fingerprints > 0 && (len(store.Status.Fingerprints) != fingerprints || store.Status.FetchedAt == nil) {
				return fmt.Errorf("the status is %+v", store.Status)
			}
			return nil
		}
	}
	eventually(t, shows(metav1.ConditionFalse, 0))
	condition := meta.FindStatusCondition(store.Status.Conditions, v1beta1.ConditionReady)
	require.Equal(t, string(policy.ReasonUnreadable), condition.Reason)
	require.Contains(t, condition.Message, "its answer cannot be used")
	require.NotContains(t, condition.Message, "it is sealed", "what servers say is not shown")
	require.NotContains(t, condition.Message, "hvs.secret")
	source := <-asked
	require.Equal(t, "transit/keys/release", source.Path)
	require.Equal(t, "hvs.secret", source.Credential("token"))
	content.Store(&key.PEM)
	eventually(t, shows(metav1.ConditionTrue, 1))
	require.Equal(t, []string{key.Fingerprint}, store.Status.Fingerprints)
}
