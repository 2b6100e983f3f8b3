//go:build e2e || nightly

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// onboard makes so many Tenants, each with rules in its home namespace and two further namespaces.
func onboard(ctx context.Context, into client.Client, tenants int, prefix, pem string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range tenants {
		group.Go(func() error {
			home := fmt.Sprintf("%s-%04d", prefix, i)
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: home},
				Spec: v1beta1.TenantSpec{HomeNamespace: home, Namespaces: []string{home + "-web"}, NamespacePrefix: home + "-dev-"}}
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

// The figures that make nightly logs stand in docs/design/performance.md.
func TestAChangeInHomeIsLiveInEveryMemberAndInNoOtherTenant(t *testing.T) {
	running, teams := crowd(t)
	tenants, prefix := teams/2, suite.Fresh("iris")
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	other, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	fast := unlimited(t, running)
	require.NoError(t, onboard(t.Context(), fast, tenants, prefix, string(key.PEM)))

	before := memory.InUse()
	set, _ := run(t, running.Config, controller.Options{})
	t.Logf("ready %s after the start", eventually(t, func(context.Context) error { return set.Ready() }))
	t.Logf("%d MiB of memory for caches and snapshot of %d Tenants with 3 namespaces each", (memory.InUse()-before)>>20, tenants)

	home := fmt.Sprintf("%s-%04d", prefix, tenants/2)
	mine := []verify.Namespace{verify.Namespace(home), verify.Namespace(home + "-web"), verify.Namespace(home + "-dev-a")}
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
		changed := &v1beta1.TrustStore{}
		require.NoError(t, fast.Get(t.Context(), client.ObjectKey{Namespace: home, Name: "keys"}, changed))
		changed.Spec.Source = v1beta1.TrustSource{Inline: string(other.PEM)}
		began := time.Now()
		require.NoError(t, fast.Update(t.Context(), changed))
		eventually(t, func(context.Context) error {
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
	// more after the start. A new one, whose name makes it a tenant namespace, is the last.
	last := fmt.Sprintf("%s-%04d-dev-b", prefix, tenants-1)
	began := time.Now()
	require.NoError(t, fast.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: last}}))
	eventually(t, func(context.Context) error {
		if snapshot := set.Snapshot(); !snapshot.Has(verify.Namespace(last)) || snapshot.Tenant(verify.Namespace(last)) != strings.TrimSuffix(last, "-dev-b") {
			return errors.New("not live")
		}
		return nil
	})
	t.Logf("a new namespace of a Tenant, right after the start, has its rules %s after its creation began", time.Since(began).Round(time.Millisecond))
	was = generations()
	t.Logf("a change in a home namespace is live in its namespaces %s after its update began", change(home, mine...))
	is := generations()
	for _, namespace := range mine {
		delete(was, namespace)
		delete(is, namespace)
	}
	require.True(t, maps.Equal(was, is), "other Tenants keep their generations")
}
