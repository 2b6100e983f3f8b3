//go:build e2e

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/controller"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

func startCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	tools := os.Getenv("LANDWAITER_CLUSTER_TOOLS")
	require.NotEmpty(t, tools, "LANDWAITER_CLUSTER_TOOLS is not set; run make e2e")
	running, err := cluster.Start(t.Context(), cluster.Options{Tools: tools, Dir: t.TempDir(), WithoutGatekeeper: true})
	require.NoError(t, err)
	t.Cleanup(running.Stop)
	files, err := filepath.Glob("../../config/crd/landwaiter.dev_*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(v1alpha1.Kinds()))
	for _, name := range files {
		objects, err := cluster.DecodeFile(name)
		require.NoError(t, err)
		require.NoError(t, running.Apply(t.Context(), objects...))
	}
	return running
}

// run starts a controller and returns its set, and how to end it.
func run(t *testing.T, config *rest.Config, options controller.Options) (*tenant.Set, func()) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	set := &tenant.Set{}
	registries := registry.NewClient(registry.Options{})
	c, err := controller.New(config, set, compile.Outside{Registry: registries.For}, log, options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
			registries.Close()
		}
	}
	t.Cleanup(stop)
	return set, stop
}

func eventually(t *testing.T, limit time.Duration, ok func(context.Context) error) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	require.NoError(t, cluster.Until(ctx, ok))
	return time.Since(began)
}

func labelled(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// team are four resources of a namespace.
func team(namespace, pem string) []client.Object {
	keys := &v1alpha1.TrustStore{ObjectMeta: labelled(namespace, "keys")}
	keys.Spec.Type, keys.Spec.Source.Inline = v1alpha1.TrustStoreTypePublicKeys, pem
	if pem == "" {
		keys.Spec.Source = v1alpha1.TrustSource{SecretKeyRef: &v1alpha1.KeyRef{Name: "cosign-pub", Key: "cosign.pub"}}
	}
	release := &v1alpha1.Verifier{ObjectMeta: labelled(namespace, "release")}
	release.Spec.Type = v1alpha1.VerifierTypeCosign
	release.Spec.Cosign = &v1alpha1.CosignVerifier{Signers: v1alpha1.Signers{Keys: &v1alpha1.Keys{TrustStoreRefs: []v1alpha1.TrustStoreRef{{Name: "keys"}}}}}
	store := &v1alpha1.Store{ObjectMeta: labelled(namespace, "registry")}
	store.Spec.Registries = []string{"registry.example.com"}
	policy := &v1alpha1.VerificationPolicy{ObjectMeta: labelled(namespace, "signed")}
	policy.Spec.Rules = []v1alpha1.PolicyRule{{Images: []string{"**"}, Require: []v1alpha1.Requirement{{AnyOf: []string{"release"}}}}}
	return []client.Object{keys, release, store, policy}
}

// The figures of this test are logged, and stand in the change log: how long a
// change takes to be in force with 1,000 namespaces of 4 resources each.
func TestAChangeIsLiveAmongAThousandNamespaces(t *testing.T) {
	const teams = 1000
	running := startCluster(t)
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	config := rest.CopyConfig(running.Config)
	config.QPS = -1
	fast, err := running.NewClient(config)
	require.NoError(t, err)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range teams {
		group.Go(func() error {
			name := fmt.Sprintf("team-%04d", i)
			if err := fast.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				return err
			}
			pem := string(key.PEM)
			if i%2 == 0 { // every other team has its key in a Secret
				pem = ""
				if err := fast.Create(ctx, &corev1.Secret{ObjectMeta: labelled(name, "cosign-pub"), Data: map[string][]byte{"cosign.pub": key.PEM}}); err != nil {
					return err
				}
			}
			for _, object := range team(name, pem) {
				if err := fast.Create(ctx, object); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())

	before := memory.InUse()
	set, _ := run(t, running.Config, controller.Options{})
	t.Logf("ready %s after the start", eventually(t, time.Minute, func(context.Context) error { return set.Ready() }).Round(time.Millisecond))
	t.Logf("%d MiB of memory for caches and snapshot", (memory.InUse()-before)>>20)

	generation := func(namespace verify.Namespace) string {
		config, err := set.For(namespace)
		require.NoError(t, err)
		return config.Generation
	}
	mine, theirs := generation("team-0500"), generation("team-0501")
	changed := &v1alpha1.TrustStore{}
	require.NoError(t, fast.Get(t.Context(), client.ObjectKey{Namespace: "team-0500", Name: "keys"}, changed))
	changed.Spec.Source = v1alpha1.TrustSource{Inline: string(other.PEM)}
	began := time.Now()
	require.NoError(t, fast.Update(t.Context(), changed))
	eventually(t, time.Minute, func(context.Context) error {
		if generation("team-0500") == mine {
			return errors.New("not live")
		}
		return nil
	})
	t.Logf("a namespace's change is live %s after its update began", time.Since(began).Round(time.Millisecond))
	require.Equal(t, theirs, generation("team-0501"), "another namespace is not touched")

	floor := &v1alpha1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "floor"}}
	floor.Spec.Scope, floor.Spec.DefaultAction = v1alpha1.PolicyScopeFloor, v1alpha1.DefaultActionAllow
	began = time.Now()
	require.NoError(t, fast.Create(t.Context(), floor))
	eventually(t, time.Minute, func(context.Context) error {
		if generation("team-0501") == theirs {
			return errors.New("not live")
		}
		return nil
	})
	t.Logf("a cluster-wide change is live %s after its update began", time.Since(began).Round(time.Millisecond))
}

func TestAnotherReplicaWritesStatusesWhenOneEnds(t *testing.T) {
	running := startCluster(t)
	require.NoError(t, running.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "landwaiter-system"}}))
	require.NoError(t, running.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}))
	options := controller.Options{OwnNamespace: "landwaiter-system", LeaderElection: true}
	first, stop := run(t, running.Config, options)
	second, _ := run(t, running.Config, options)
	eventually(t, 30*time.Second, func(context.Context) error { return errors.Join(first.Ready(), second.Ready()) })

	store := &v1alpha1.Store{ObjectMeta: labelled("team-a", "registry"), Spec: v1alpha1.StoreSpec{StoreCommon: v1alpha1.StoreCommon{Registries: []string{"registry.example.com"}}}}
	require.NoError(t, running.Client.Create(t.Context(), store))
	ready := func(ctx context.Context) error {
		if err := running.Client.Get(ctx, client.ObjectKeyFromObject(store), store); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(store.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || condition.ObservedGeneration != store.Generation {
			return fmt.Errorf("the condition is %+v", condition)
		}
		return nil
	}
	eventually(t, 30*time.Second, ready)
	stop()
	store.Spec.Registries = []string{"another.example.com"}
	require.NoError(t, running.Client.Update(t.Context(), store))
	t.Logf("the other replica wrote after %s", eventually(t, time.Minute, ready).Round(time.Millisecond))
}

func TestMaterialFromElsewhereIsFetchedAndShownInTheStatus(t *testing.T) {
	running := startCluster(t)
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	for _, name := range []string{"landwaiter-system", "team-a"} {
		require.NoError(t, running.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
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
	run(t, running.Config, controller.Options{OwnNamespace: "landwaiter-system", External: keeper})

	require.NoError(t, running.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: labelled("team-a", "vault"), Data: map[string][]byte{"token": []byte("hvs.secret")}}))
	store := &v1alpha1.TrustStore{ObjectMeta: labelled("team-a", "keys"), Spec: v1alpha1.TrustStoreSpec{TrustStoreCommon: v1alpha1.TrustStoreCommon{Type: v1alpha1.TrustStoreTypePublicKeys},
		Source: v1alpha1.TrustSource{Vault: &v1alpha1.VaultSource{VaultPath: v1alpha1.VaultPath{Address: "https://vault.example.com", Path: "transit/keys/release"},
			TokenSecretKeyRef: &v1alpha1.KeyRef{Name: "vault", Key: "token"}}}}}
	require.NoError(t, running.Client.Create(t.Context(), store))
	shows := func(status metav1.ConditionStatus, fingerprints int) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := running.Client.Get(ctx, client.ObjectKeyFromObject(store), store); err != nil {
				return err
			}
			condition := meta.FindStatusCondition(store.Status.Conditions, v1alpha1.ConditionReady)
			if condition == nil || condition.Status != status {
				return fmt.Errorf("the condition is %+v", condition)
			}
			if fingerprints > 0 && (len(store.Status.Fingerprints) != fingerprints || store.Status.FetchedAt == nil) {
				return fmt.Errorf("the status is %+v", store.Status)
			}
			return nil
		}
	}
	eventually(t, 30*time.Second, shows(metav1.ConditionFalse, 0))
	condition := meta.FindStatusCondition(store.Status.Conditions, v1alpha1.ConditionReady)
	require.Equal(t, string(policy.ReasonUnreadable), condition.Reason)
	require.Contains(t, condition.Message, "its answer cannot be used")
	require.NotContains(t, condition.Message, "it is sealed", "what servers say is not shown")
	require.NotContains(t, condition.Message, "hvs.secret")
	source := <-asked
	require.Equal(t, "transit/keys/release", source.Path)
	require.Equal(t, "hvs.secret", source.Credential("token"))
	content.Store(&key.PEM)
	eventually(t, 30*time.Second, shows(metav1.ConditionTrue, 1))
	require.Equal(t, []string{key.Fingerprint}, store.Status.Fingerprints)
}
