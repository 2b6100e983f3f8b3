//go:build e2e

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/controller"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// teams makes Tenants, each with rules in its home and two further namespaces.
func teams(ctx context.Context, into client.Client, n int, pem string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			home := fmt.Sprintf("iris-%04d", i)
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: home}, Spec: v1alpha1.TenantSpec{Home: home, Namespaces: []string{home + "-web"}, NamespacePrefix: home + "-dev-"}}
			objects := []client.Object{tenant}
			for _, suffix := range []string{"", "-web", "-dev-a"} {
				objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home + suffix}})
			}
			for _, object := range append(objects, team(home, pem)...) {
				if err := into.Create(ctx, object); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// The figures of this test are logged, and stand in docs/performance.md.
func TestAChangeInHomeIsLiveInEveryMemberAndInNoOtherTenant(t *testing.T) {
	const tenants = 500
	running := startCluster(t)
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	config := rest.CopyConfig(running.Config)
	config.QPS = -1
	fast, err := running.NewClient(config)
	require.NoError(t, err)
	require.NoError(t, teams(t.Context(), fast, tenants, string(key.PEM)))

	before := memory.InUse()
	set, _ := run(t, running.Config, controller.Options{})
	t.Logf("ready %s after the start", eventually(t, time.Minute, func(context.Context) error { return set.Ready() }).Round(time.Millisecond))
	t.Logf("%d MiB of memory for caches and snapshot of %d Tenants with 3 namespaces each", (memory.InUse()-before)>>20, tenants)

	const home = "iris-0250"
	mine := []verify.Namespace{home, home + "-web", home + "-dev-a"}
	generations := func() map[verify.Namespace]string {
		all := map[verify.Namespace]string{}
		for _, namespace := range set.Snapshot().Namespaces() { // those of the system too
			all[namespace] = set.Snapshot().For(namespace).Generation
		}
		return all
	}
	was := generations()
	require.Greater(t, len(was), 3*tenants)
	change := func(home string, namespaces ...verify.Namespace) time.Duration {
		changed := &v1alpha1.TrustStore{}
		require.NoError(t, fast.Get(t.Context(), client.ObjectKey{Namespace: home, Name: "keys"}, changed))
		changed.Spec.Source = v1alpha1.TrustSource{Inline: string(other.PEM)}
		began := time.Now()
		require.NoError(t, fast.Update(t.Context(), changed))
		eventually(t, time.Minute, func(context.Context) error {
			for _, namespace := range namespaces {
				if set.Snapshot().For(namespace).Generation == was[namespace] {
					return errors.New("not live")
				}
			}
			return nil
		})
		return time.Since(began).Round(time.Millisecond)
	}
	// The watches begin with an event of every object, so each namespace is compiled once
	// more after the start. A new one, whose name makes it a member, is the last.
	const last = "iris-0499-dev-b"
	began := time.Now()
	require.NoError(t, fast.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: last}}))
	eventually(t, time.Minute, func(context.Context) error {
		if snapshot := set.Snapshot(); !snapshot.Has(last) || snapshot.Tenant(last) != "iris-0499" {
			return errors.New("not live")
		}
		return nil
	})
	t.Logf("a new namespace of a Tenant, right after the start, has its rules %s after its creation began", time.Since(began).Round(time.Millisecond))
	was = generations()
	t.Logf("a change in a home is live in its members %s after its update began", change(home, mine...))
	is := generations()
	for _, namespace := range mine {
		delete(was, namespace)
		delete(is, namespace)
	}
	require.True(t, maps.Equal(was, is), "other Tenants keep their generations")
}
