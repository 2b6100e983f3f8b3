package resource_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// taking returns a policy that takes about so many bytes, though little is written.
func taking(namespace, name string, bytes int) *v1beta1.VerificationPolicy {
	p := policyOf(0)
	p.Namespace, p.Name = namespace, name
	p.Spec.Rules[0].Require = make([]v1beta1.Requirement, bytes/int(reflect.TypeFor[v1beta1.Requirement]().Size()))
	return p
}

// written are n policies of some 60 KiB each in a namespace.
func written(namespace string, n int) []v1beta1.Object {
	all := make([]v1beta1.Object, n)
	for i := range all {
		all[i] = taking(namespace, fmt.Sprintf("p%03d", i), 60<<10)
	}
	return all
}

// excepted are n Exceptions of some 60 KiB each in a namespace.
func excepted(namespace string, n int) []v1beta1.Object {
	all := make([]v1beta1.Object, n)
	for i := range all {
		x := &v1beta1.Exception{}
		x.Namespace, x.Name, x.Spec.Images = namespace, fmt.Sprintf("x%03d", i), make([]string, 60<<10/16)
		all[i] = x
	}
	return all
}

// keep has a room keep objects, and returns how many of them it kept, and their bytes.
func keep(t *testing.T, r *resource.Room, objects []v1beta1.Object) (kept, bytes int) {
	t.Helper()
	for _, object := range objects {
		size := resource.Size(object)
		require.NoError(t, r.Keep(object))
		require.Equal(t, size, resource.Size(object), "what is dropped has the size that it had")
		if err := resource.Missing(object); err != nil {
			require.ErrorContains(t, err, "too much was kept of namespace "+object.GetNamespace())
			require.Equal(t, policy.ReasonUnreadable, resource.ReasonOf(err))
			require.True(t, resource.Withheld(object))
			continue
		}
		kept, bytes = kept+1, bytes+size
	}
	return kept, bytes
}

func tenants(all ...*v1beta1.Tenant) *resource.Tenants { return resource.NewTenants(all) }

func tenantWith(name string, members ...string) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{}
	tenant.Name, tenant.Spec.HomeNamespace, tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix = name, name, members, name+"-"
	return tenant
}

func TestANamespaceKeepsAsManySpecsAsItHasRoomFor(t *testing.T) {
	var r resource.Room
	objects := written("team-a", 100)
	kept, bytes := keep(t, &r, objects)
	require.InDelta(t, 4<<20, bytes, 64<<10)
	again, _ := keep(t, &r, objects)
	require.Equal(t, kept, again, "a second look changes nothing")
	require.Empty(t, r.Settle("team-a", objects), "all together do not fit")
}

func TestOtherNamespacesAndExceptionsAndTheClusterHaveRoomOfTheirOwn(t *testing.T) {
	var r resource.Room
	keep(t, &r, written("team-a", 100))
	kept, _ := keep(t, &r, append(written("team-b", 1), excepted("team-a", 1)...))
	require.Equal(t, 2, kept)
	_, bytes := keep(t, &r, excepted("team-a", 100))
	require.InDelta(t, 2<<20, bytes, 64<<10)
	for i := range 100 {
		cluster := &v1beta1.ClusterVerificationPolicy{Spec: taking("", "", 60<<10).Spec}
		cluster.Name = fmt.Sprint(i)
		require.NoError(t, r.Keep(cluster))
		require.NoError(t, resource.Missing(cluster))
	}
}

func TestAChangeReplacesWhatItTook(t *testing.T) {
	var r resource.Room
	for range 200 {
		kept, _ := keep(t, &r, written("team-a", 1))
		require.Equal(t, 1, kept)
	}
}

func TestWhatIsGoneMakesRoomOnceTheNamespaceIsSettled(t *testing.T) {
	var r resource.Room
	objects := written("team-a", 100)
	keep(t, &r, objects)
	left := objects[60:]
	kept, _ := keep(t, &r, written("team-a", 100)[98:])
	require.Zero(t, kept, "nobody has said yet that the others are gone")
	fitting := r.Settle("team-a", left)
	require.NotEmpty(t, fitting)
	for _, object := range left {
		require.Equal(t, resource.Withheld(object), slices.Contains(fitting, object))
	}
	kept, _ = keep(t, &r, written("team-a", 100)[60:])
	require.Equal(t, 40, kept)
	r.Settle("team-a", nil)
	kept, _ = keep(t, &r, written("team-a", 60))
	require.Equal(t, 60, kept)
}

func TestTheNamespacesOfATenantShareRoomButForItsHome(t *testing.T) {
	var r resource.Room
	r.Hold(tenants(tenantWith("iris"), tenantWith("rose")))
	bytes := 0
	for i := range 12 {
		_, more := keep(t, &r, append(written(fmt.Sprint("iris-", i), 34), excepted(fmt.Sprint("iris-", i), 34)...))
		bytes += more
	}
	require.InDelta(t, 14<<20, bytes, 128<<10, "12 MiB of resources and 2 MiB of Exceptions")
	for _, other := range []string{"iris", "rose-a", "shop"} {
		kept, _ := keep(t, &r, append(written(other, 34), excepted(other, 34)...))
		require.Equal(t, 68, kept, "%s has room of its own", other)
	}
}

func TestANamespaceThatChangesHandsTakesItsRoomWithIt(t *testing.T) {
	var r resource.Room
	iris := tenantWith("iris")
	r.Hold(tenants(iris))
	for i := range 4 {
		keep(t, &r, written(fmt.Sprint("iris-", i), 60))
	}
	fits := func() bool {
		kept, _ := keep(t, &r, written("iris-x", 2))
		return kept == 2
	}
	require.False(t, fits())
	r.Hold(tenants(iris, tenantWith("rose", "iris-1")))
	require.True(t, fits(), "another Tenant names what the first holds by its prefix")
	r.Hold(tenants(iris))
	require.False(t, fits())
	r.Hold(tenants())
	require.True(t, fits(), "there is no Tenant")
	r.Clear()
	r.Hold(tenants(iris))
	require.True(t, fits())
}

// Whatever came and went in whatever order, no more is kept than there is room for, and what fits in
// the end is kept or read.
func TestWhateverTheOrderWhatFitsInTheEndIsKeptOrRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	namespaces := []string{"iris", "iris-a", "iris-b", "iris-c", "iris-d", "shop"}
	for range 2 {
		var r resource.Room
		r.Hold(tenants(tenantWith("iris")))
		cached := map[string]map[string]v1beta1.Object{}
		list := func(namespace string) (all []v1beta1.Object) {
			for _, object := range cached[namespace] {
				all = append(all, object)
			}
			return all
		}
		for step := range 500 {
			namespace := namespaces[random.IntN(len(namespaces))]
			if cached[namespace] == nil {
				cached[namespace] = map[string]v1beta1.Object{}
			}
			switch object := taking(namespace, fmt.Sprint(random.IntN(50)), random.IntN(256<<10)); random.IntN(6) {
			case 0:
				delete(cached[namespace], object.GetName())
			case 1:
				r.Settle(namespace, list(namespace))
			default:
				require.NoError(t, r.Keep(object))
				cached[namespace][object.GetName()] = object
			}
			together := 0
			for _, of := range namespaces {
				own := 0
				for _, object := range cached[of] {
					if step%50 > 0 {
						break // looking takes longer than what is tested
					}
					if !resource.Withheld(object) {
						own += resource.Size(object)
					}
				}
				require.LessOrEqual(t, own, 4<<20)
				if strings.HasPrefix(of, "iris-") {
					together += own
				}
			}
			require.LessOrEqual(t, together, 12<<20)
		}
		together := 0
		for _, namespace := range namespaces {
			own := 0
			for name, object := range cached[namespace] {
				if own += resource.Size(object); own > 2<<20 {
					own -= resource.Size(object)
					delete(cached[namespace], name)
				}
			}
			together += own
			r.Settle(namespace, list(namespace)) // what is gone
		}
		for _, namespace := range namespaces {
			fitting := r.Settle(namespace, list(namespace))
			for _, object := range list(namespace) {
				require.Equal(t, resource.Withheld(object), slices.Contains(fitting, object), "%d KiB fit", together>>10)
			}
		}
	}
}

func TestTheSizeOfASpecIsWhatItTakesInMemory(t *testing.T) {
	short := policyOf(0)
	for range 1000 {
		short.Spec.Rules[0].Require[0].AnyOf = append(short.Spec.Rules[0].Require[0].AnyOf, "x")
	}
	require.Equal(t, 17_000, resource.Size(short)-resource.Size(policyOf(0)), "a text has a head, too")
	annotated := &v1beta1.Verifier{Spec: v1beta1.VerifierSpec{Cosign: &v1beta1.CosignVerifier{Annotations: map[string]string{"a": "bc"}}}}
	plain := &v1beta1.Verifier{Spec: v1beta1.VerifierSpec{Cosign: &v1beta1.CosignVerifier{}}}
	require.Equal(t, 35, resource.Size(annotated)-resource.Size(plain))
	require.Greater(t, resource.Size(plain), resource.Size(&v1beta1.Verifier{}))
}
