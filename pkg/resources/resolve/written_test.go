package resolve_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// taking is a namespace that allows images of its own name and has n specs of 63 KiB of
// memory, which weigh little more than twice that. They are broken, and no policy needs them.
func taking(namespace string, n int) []v1beta1.Object {
	list := weighing(namespace, 0)
	for i := range n {
		v := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("v%03d", i)}}
		v.UID = types.UID(namespace + v.Name)
		v.Spec.Type, v.Spec.Notation = "None", &v1beta1.NotationVerifier{TrustedIdentities: slices.Repeat([]string{strings.Repeat("x", 240)}, 249)}
		list = append(list, v)
	}
	return list
}

// copies returns what an API server would send of a content again.
func (c content) copies() []v1beta1.Object {
	var all []v1beta1.Object
	for _, level := range slices.Sorted(maps.Keys(c)) {
		for _, object := range c[level] {
			again, ok := object.DeepCopyObject().(v1beta1.Object)
			if !ok {
				panic("a copy is of another kind")
			}
			all = append(all, again)
		}
	}
	return all
}

// replica is what a replica has of a content that came in some order: what it cached, and the content with what it read
// again because there is room for it.
func (c content) replica(t *testing.T, order []v1beta1.Object) (cached, whole content, kept int) {
	t.Helper()
	var room resource.Room
	var tenants []*v1beta1.Tenant
	for _, object := range c[verify.Cluster] {
		if tenant, ok := object.(*v1beta1.Tenant); ok {
			tenants = append(tenants, tenant)
		}
	}
	room.Hold(resource.NewTenants(tenants))
	cached, whole = content{}, content{}
	for level := range c {
		cached[level] = nil
	}
	for _, object := range order {
		require.NoError(t, room.Keep(object))
		if _, limited := resource.ShareOf(object); limited && resource.Missing(object) == nil {
			kept += resource.Size(object)
		}
		level := verify.Namespace(object.GetNamespace())
		cached[level] = append(cached[level], object)
	}
	for level, list := range cached {
		whole[level] = slices.Clone(list)
		for _, again := range room.Settle(string(level), list) {
			i := slices.IndexFunc(c[level], func(o v1beta1.Object) bool { return resource.RefOf(o) == resource.RefOf(again) })
			whole[level][slices.Index(list, again)] = c[level][i]
		}
	}
	return cached, whole, kept
}

// crowd is a Tenant with 40 namespaces of which each fits by itself, one with more than a namespace may have, and
// others.
func crowd(specs int) content {
	c := content{verify.Cluster: {tenantOf("iris"), tenantOf("rose")}, "iris": taking("iris", 55), "rose": taking("rose", 50), "shop": taking("shop", 50),
		"iris-huge": taking("iris-huge", 70)}
	for i := range 40 {
		name := fmt.Sprintf("iris-%02d", i)
		c[verify.Namespace(name)] = taking(name, specs)
	}
	return c
}

func TestTheSpecsOfATenantsNamespacesHaveOneLimitTogetherWhateverCameFirst(t *testing.T) {
	for specs, want := range map[int][]verify.Namespace{
		2: {"iris", "iris-00", "iris-01", "iris-02", "iris-39", "rose", "shop"}, // 5 MiB, and 4 of iris-huge
		9: {"iris", "rose", "shop"},
	} {
		c := crowd(specs)
		var first *resolve.Snapshot
		for range 2 {
			order := c.copies()
			rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			_, whole, kept := c.replica(t, order)
			require.LessOrEqual(t, kept, 16<<20+8<<20, "with what rose and shop have")
			s := whole.compiled()
			require.Equal(t, want, served(t, s, "iris", "iris-00", "iris-01", "iris-02", "iris-39", "iris-huge", "rose", "shop"))
			if first == nil {
				first = s
			}
			same(t, first, s)
		}
		same(t, c.compiled(), first)
		report := conditions.Reports(first, "iris-39")[policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "iris-39", Name: "lax"}]
		if specs > 2 {
			require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason)
			require.Contains(t, report.Ready.Message, "the specs of the resources of Tenant iris take more than 12288 KiB, the limit of all its namespaces but the "+
				"home namespace together; those of namespace iris-39 take 5")
		}
	}
}

// Fewer resources in one namespace of a Tenant make room for others, and the snapshot says
// for which.
func TestASnapshotSaysOfWhichNamespacesSpecsHaveToBeRead(t *testing.T) {
	c := content{verify.Cluster: {tenantOf("iris")}, "iris": nil}
	for i := range 4 {
		name := fmt.Sprintf("iris-%d", i)
		c[verify.Namespace(name)] = taking(name, 55)
	}
	cached, whole, _ := c.replica(t, c.copies())
	s := cached.compiled()
	lacking := func(is, was *resolve.Snapshot) (found []verify.Namespace) {
		for _, namespace := range is.ChangedSince(was) {
			if is.Lacks(namespace) {
				found = append(found, namespace)
			}
		}
		return found
	}
	empty := content{}.compiled()
	require.Empty(t, lacking(s, empty), "they do not fit")
	require.Empty(t, lacking(whole.compiled(), empty))
	next, _ := s.Next(resolve.Group(content{"iris-0": taking("iris-0", 1)}.objects("iris-0")).Only("iris-0"), nil)
	require.Equal(t, []verify.Namespace{"iris-3"}, lacking(next, s))
	require.Empty(t, lacking(s, next))
	free, _ := s.Next(resolve.Group(resource.Objects{}).Only(verify.Cluster), nil)
	require.Equal(t, []verify.Namespace{"iris-3"}, lacking(free, s), "no Tenant has them")
}
