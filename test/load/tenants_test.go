package load

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const (
	tenants = 500
	members = 3 // of each, the home namespace among them
)

// ofTenants gives each Tenant a home namespace with a trust store, a verifier and a policy, and
// members without resources.
func ofTenants(key string) resource.Objects {
	o := resources("127.0.0.1:5000", key, tenants)
	for i := range tenants {
		tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: string(team(i)), Namespaces: []string{string(team(i)) + "-web"},
			NamespacePrefix: string(team(i)) + "-dev-"}}
		tenant.Name = string(team(i))
		o.Resources = append(o.Resources, tenant)
		for _, suffix := range []string{"", "-web", "-dev-a"}[:members] {
			o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(team(i)) + suffix, UID: types.UID(fmt.Sprint(i, suffix))}})
		}
	}
	return o
}

func newKey(b *testing.B) string {
	b.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(b, err)
	return string(key.PEM)
}

// BenchmarkTenantsCompile compiles everything of 500 Tenants.
func BenchmarkTenantsCompile(b *testing.B) {
	s := newService(b, cold(), resource.Objects{})
	objects := ofTenants(newKey(b))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var snapshot *resolve.Snapshot
	for b.Loop() {
		snapshot, _ = resolve.Empty(s.Outside()).Next(resolve.Group(objects), nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Len(b, snapshot.Namespaces(), tenants*members+1)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
}

// BenchmarkTenantsHomeChange changes the rules of one home namespace, which its members follow.
func BenchmarkTenantsHomeChange(b *testing.B) {
	key := newKey(b)
	snapshot := newService(b, cold(), ofTenants(key)).Set().Snapshot()
	one := resources("127.0.0.1:5000", key, 1)
	for b.Loop() {
		next, problems := snapshot.Next(resolve.Group(one).Only(team(0)), nil)
		require.Empty(b, problems)
		require.NotSame(b, snapshot.For(team(0)+"-web"), next.For(team(0)+"-web"))
	}
}

// BenchmarkTenantsChange makes one Tenant more, and deletes it. Like the controller, it compiles the cluster's objects.
func BenchmarkTenantsChange(b *testing.B) {
	all := ofTenants(newKey(b))
	snapshot := newService(b, cold(), all).Set().Snapshot()
	var objects, without resource.Objects
	for _, object := range all.Resources {
		if object.GetNamespace() != "" {
			continue
		}
		objects.Resources = append(objects.Resources, object)
		if object.GetName() != string(team(0)) {
			without.Resources = append(without.Resources, object)
		}
	}
	for with := false; b.Loop(); with = !with {
		if with {
			snapshot, _ = snapshot.Next(resolve.Group(objects).Only(verify.Cluster), nil)
		} else {
			snapshot, _ = snapshot.Next(resolve.Group(without).Only(verify.Cluster), nil)
		}
	}
}
