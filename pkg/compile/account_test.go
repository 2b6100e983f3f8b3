package compile_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// content is what the snapshots of these tests are compiled from.
type content map[verify.Namespace][]v1alpha1.Object

// objects returns the content of some levels.
func (c content) objects(levels ...verify.Namespace) resource.Objects {
	var o resource.Objects
	for _, level := range levels {
		list, ok := c[level]
		if ok && level != verify.Cluster {
			o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(level), UID: types.UID("of-" + level)}})
		}
		o.Resources = append(o.Resources, list...)
	}
	return o
}

func (c content) compiled() *compile.Snapshot {
	s, _ := compiled(c.objects(slices.Collect(maps.Keys(c))...))
	return s
}

// tenantOf is a Tenant with a prefix.
func tenantOf(name string, members ...string) *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	tenant.Spec.Home, tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix = name, members, name+"-"
	return tenant
}

// exceptionsOf are n exceptions of a namespace, each with so many images.
func exceptionsOf(namespace string, n, images int) []v1alpha1.Object {
	var list []v1alpha1.Object
	for i := range n {
		x := &v1alpha1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("x%02d", i), CreationTimestamp: metav1.NewTime(born)}}
		x.Spec.Reason, x.Spec.Until = "OPS-1", born.Add(time.Hour).Format(time.RFC3339)
		for j := range images {
			x.Spec.Images = append(x.Spec.Images, fmt.Sprintf("x.example.com/%s/%d/%d", namespace, i, j))
		}
		list = append(list, x)
	}
	return list
}

// delegating are n ClusterExceptions for the Exceptions of a Tenant.
func delegating(tenant string, n int) []v1alpha1.Object {
	var list []v1alpha1.Object
	for i := range n {
		x := &v1alpha1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("d%02d", i), CreationTimestamp: metav1.NewTime(born)}}
		x.Spec.Reason, x.Spec.Until = "OPS-1", born.Add(2*time.Hour).Format(time.RFC3339)
		x.Spec.Delegate = &v1alpha1.ExceptionDelegation{Images: []string{"x.example.com/**"}, Tenants: []string{tenant}}
		list = append(list, x)
	}
	return list
}

// hoarding is a Tenant with 64 Exceptions in home and in each of its other namespaces, and with 32
// delegations for them.
func hoarding(members int) content {
	c := content{verify.Cluster: append(delegating("iris", 32), tenantOf("iris")), "iris": exceptionsOf("iris", 64, 1)}
	for i := range members {
		name := fmt.Sprintf("iris-%03d", i)
		c[verify.Namespace(name)] = exceptionsOf(name, 64, 1)
	}
	return c
}

func TestExceptionsAndDelegationsAreKeptOnceEach(t *testing.T) {
	o := hoarding(256).objects(slices.Collect(maps.Keys(hoarding(256)))...)
	before := memory.InUse()
	s, _ := compiled(o)
	kept := memory.InUse() - before
	t.Logf("%d KiB are kept", kept>>10)
	require.Less(t, kept, 32<<20, "in each namespace an Exception of home takes a few words, whatever delegates it")
	require.Equal(t, "Exception iris/x63", by(t, s, "iris-255", "x.example.com/iris/63/0:1", soon))
	require.Empty(t, by(t, s, "iris-255", "x.example.com/iris/63/0:1", born.Add(time.Hour)))
	runtime.KeepAlive(o)
}

// BenchmarkAChangeAmongManyExceptions changes the home of a Tenant, which concerns all of its
// namespaces, and one of these.
func BenchmarkAChangeAmongManyExceptions(b *testing.B) {
	c := hoarding(256)
	s := c.compiled()
	for _, namespace := range []verify.Namespace{"iris", "iris-100"} {
		b.Run(string(namespace), func(b *testing.B) {
			changed := c.objects(namespace)
			for b.Loop() {
				s.With(namespace, changed, nil)
			}
		})
	}
}
