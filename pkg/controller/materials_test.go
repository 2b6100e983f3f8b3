package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func secretSource(namespace, name string) policy.ObjectRef {
	return policy.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}
}

func secret(namespace, name, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version},
		Data: map[string][]byte{"key": []byte("value " + version)}}
}

// settled is how long a test waits for another goroutine.
const settled = 10 * time.Second

// follower runs materials over a fake API server and counts what it asks for.
type follower struct {
	*materials
	changes atomic.Int64
}

func follow(t *testing.T, clients *fake.Clientset) *follower {
	t.Helper()
	f := &follower{}
	f.materials = newMaterials(clients, func(verify.Namespace) { f.changes.Add(1) })
	ctx, stop := context.WithCancel(t.Context())
	f.runIn(ctx)
	t.Cleanup(func() { stop(); f.wait() })
	return f
}

// filled waits until the objects are as ok wants them.
func (f *follower) filled(t *testing.T, sources []policy.ObjectRef, ok func(tenant.Objects) bool) tenant.Objects {
	t.Helper()
	var o tenant.Objects
	require.Eventually(t, func() bool {
		o = tenant.Objects{}
		f.fill(&o, sources)
		return ok(o)
	}, settled, time.Millisecond)
	return o
}

func TestFollowsWhatIsNamedForAsLongAsItIs(t *testing.T) {
	clients := fake.NewClientset(secret("team-a", "pull", "1"))
	answer := make(chan struct{})
	clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-answer
		return false, nil, nil
	})
	f := follow(t, clients)
	sources := []policy.ObjectRef{secretSource("team-a", "pull"), secretSource("team-a", "absent")}
	require.Positive(t, f.want("team-a", sources), "the first reading is waited for")
	close(answer)
	o := f.filled(t, sources, func(o tenant.Objects) bool { return len(o.Secrets) == 1 && len(o.Broken) == 0 })
	require.Equal(t, "pull", o.Secrets[0].Name)
	require.Zero(t, f.want("team-a", sources), "an absent object is known too")

	require.NoError(t, clients.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, secret("team-a", "pull", "2"), "team-a"))
	f.filled(t, sources, func(o tenant.Objects) bool { return len(o.Secrets) == 1 && o.Secrets[0].ResourceVersion == "2" })

	require.Zero(t, f.want("team-a", sources[:1]))
	require.Len(t, f.followed, 1)
	f.keepOnly(map[verify.Namespace][]policy.ObjectRef{"team-b": nil})
	require.Empty(t, f.followed)
	require.Empty(t, f.wanted)
}

func TestAnObjectIsFollowedOnceForAllWhoNeedIt(t *testing.T) {
	f := follow(t, fake.NewClientset(secret("team-a", "key", "1")))
	sources := []policy.ObjectRef{secretSource("team-a", "key")}
	f.want("team-a", sources)
	f.want(verify.Cluster, sources)
	require.Len(t, f.followed, 1)
	f.want("team-a", nil)
	require.Len(t, f.followed, 1, "the cluster's resources still need it")
	f.want(verify.Cluster, nil)
	require.Empty(t, f.followed)
}

func forbidden(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("no"))
}

func TestAMissingRightIsBrokenWithWhatToDo(t *testing.T) {
	clients := fake.NewClientset()
	clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden("key") })
	f := follow(t, clients)
	f.grant = func(source policy.ObjectRef) string { return "; grant it in " + source.Namespace }
	sources := []policy.ObjectRef{secretSource("team-a", "key")}
	f.want("team-a", sources)
	o := f.filled(t, sources, func(o tenant.Objects) bool {
		return len(o.Broken) == 1 && o.Broken[0].Reason == policy.ReasonAccessDenied
	})
	require.ErrorContains(t, o.Broken[0].Err, "landwaiter has no right to read it; grant it in team-a")
	require.Empty(t, o.Secrets)
}

func TestWhatCannotBeReadIsBrokenAndNeverAbsent(t *testing.T) {
	clients := fake.NewClientset(secret("team-a", "key", "1"))
	var down atomic.Bool
	down.Store(true)
	clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, errors.New("the API server is down")
	})
	f := follow(t, clients)
	sources := []policy.ObjectRef{secretSource("team-a", "key")}
	require.Positive(t, f.want("team-a", sources))
	o := f.filled(t, sources, func(o tenant.Objects) bool { return len(o.Broken) == 1 })
	require.Equal(t, policy.ReasonUnreadable, o.Broken[0].Reason)
	down.Store(false)
	f.filled(t, sources, func(o tenant.Objects) bool { return len(o.Secrets) == 1 && len(o.Broken) == 0 })
}

func TestReferencesPastTheLimitAreBroken(t *testing.T) {
	f := follow(t, fake.NewClientset())
	var sources []policy.ObjectRef
	for i := range maxReferences + 1 {
		sources = append(sources, secretSource("team-a", fmt.Sprintf("s%03d", i)))
	}
	f.want("team-a", sources)
	require.Len(t, f.followed, maxReferences)
	var o tenant.Objects
	f.fill(&o, sources[maxReferences:])
	require.Len(t, o.Broken, 1)
	require.ErrorContains(t, o.Broken[0].Err, "more than 64")
}
