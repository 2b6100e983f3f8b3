//go:build e2e || nightly

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/server/controller"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// unlimited returns a client that the client library does not slow down.
func unlimited(t *testing.T, c *cluster.Cluster) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	fast, err := c.NewClient(config)
	require.NoError(t, err)
	return fast
}

// The figures that make nightly logs stand in the change log: how long a change takes to be
// in force with 1,000 namespaces of 4 resources each. make e2e has 100.
func TestAChangeIsLiveAmongAThousandNamespaces(t *testing.T) {
	running, teams := crowd(t)
	prefix := suite.Fresh("team")
	name := func(i int) string { return fmt.Sprintf("%s-%04d", prefix, i) }
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	second, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	fast := unlimited(t, running)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range teams {
		group.Go(func() error {
			name := name(i)
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
	t.Logf("ready %s after the start", eventually(t, func(context.Context) error { return set.Ready() }))
	t.Logf("%d MiB of memory for caches and snapshot", (memory.InUse()-before)>>20)

	generation := func(namespace string) string {
		config, err := set.For(verify.Namespace(namespace))
		require.NoError(t, err)
		return config.Generation
	}
	changing, other := name(teams/2), name(teams/2+1)
	mine, theirs := generation(changing), generation(other)
	changed := &v1beta1.TrustStore{}
	require.NoError(t, fast.Get(t.Context(), client.ObjectKey{Namespace: changing, Name: "keys"}, changed))
	changed.Spec.Source = v1beta1.TrustSource{Inline: string(second.PEM)}
	began := time.Now()
	require.NoError(t, fast.Update(t.Context(), changed))
	eventually(t, func(context.Context) error {
		if generation(changing) == mine {
			return errors.New("not live")
		}
		return nil
	})
	t.Logf("a namespace's change is live %s after its update began", time.Since(began).Round(time.Millisecond))
	require.Equal(t, theirs, generation(other), "another namespace is not touched")

	mandatory := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: prefix}}
	mandatory.Spec.Scope, mandatory.Spec.DefaultAction = v1beta1.PolicyScopeMandatory, v1beta1.DefaultActionAllow
	began = time.Now()
	require.NoError(t, fast.Create(t.Context(), mandatory))
	t.Cleanup(func() { require.NoError(t, fast.Delete(context.WithoutCancel(t.Context()), mandatory)) })
	eventually(t, func(context.Context) error {
		if generation(other) == theirs {
			return errors.New("not live")
		}
		return nil
	})
	t.Logf("a cluster-wide change is live %s after its update began", time.Since(began).Round(time.Millisecond))
}
