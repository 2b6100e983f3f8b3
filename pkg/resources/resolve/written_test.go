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

// replica is what a replica has of a content that came in some order: what it keeps, and what
// it read again because the snapshot of what is kept has room for it.
func (c content) replica(t *testing.T, ledger *resource.Ledger, order []v1beta1.Object) (s *resolve.Snapshot, kept, read int) {
	t.Helper()
	levels := content{}
	for level := range c {
		levels[level] = nil
	}
	for _, object := range order {
		require.NoError(t, ledger.Keep(object))
		if _, limited := resource.ShareOf(object); limited && resource.Missing(object) == nil {
			kept += resource.Size(object)
		}
		level := verify.Namespace(object.GetNamespace())
		levels[level] = append(levels[level], object)
	}
	measured := resolve.Measured(levels.objects(slices.Collect(maps.Keys(levels))...))
	for level, list := range levels {
		for _, again := range resource.ReadAgain(list, measured.Crowded) {
			whole := slices.IndexFunc(c[level], func(o v1beta1.Object) bool { return resource.RefOf(o) == resource.RefOf(again) })
			list[slices.Index(list, again)] = c[level][whole]
			read += resource.Size(again)
		}
	}
	return levels.compiled(), kept, read
}

// crowd is a Tenant with 40 namespaces of which each fits by itself and those with the least
// specs fit together, one with more than a namespace may have, and others.
func crowd() content {
	c := content{verify.Cluster: {tenantOf("iris"), tenantOf("rose")}, "iris": taking("iris", 55), "rose": taking("rose", 50), "shop": taking("shop", 50),
		"iris-huge": taking("iris-huge", 70)}
	for i := range 40 {
		name := fmt.Sprintf("iris-%02d", i)
		c[verify.Namespace(name)] = taking(name, 10+i)
	}
	return c
}

func TestTheSpecsOfATenantsNamespacesHaveOneLimitTogetherWhateverCameFirst(t *testing.T) {
	c := crowd()
	all := slices.Sorted(maps.Keys(c))[1:]
	var first *resolve.Snapshot
	for range 2 {
		order := c.copies()
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		isTenant := func(o v1beta1.Object) bool { return resource.RefOf(o).Kind == v1beta1.KindTenant }
		slices.SortStableFunc(order, func(a, b v1beta1.Object) int { // Tenants come first
			return map[bool]int{isTenant(b): 1}[true] - map[bool]int{isTenant(a): 1}[true]
		})
		s, kept, read := c.replica(t, &resource.Ledger{}, order)
		require.LessOrEqual(t, kept, resource.MaxAccountBytes+8<<20, "with what rose and shop have")
		require.LessOrEqual(t, read, resource.MaxAccountBytes)
		require.Equal(t, []verify.Namespace{"iris", "iris-00", "iris-01", "iris-02", "iris-03", "iris-04", "iris-05", "iris-06", "iris-07", "iris-08", "iris-09", "iris-10", "rose", "shop"}, served(t, s, all...))
		if first == nil {
			first = s
		}
		same(t, first, s)
		for source, report := range conditions.Reports(s, "iris-39") {
			require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason, source)
			require.Contains(t, report.Ready.Message, "the specs of the resources of Tenant iris take more than 16384 KiB, the limit of all its namespaces together, and the largest namespaces are denied first; those of namespace iris-39 take 30")
			require.Contains(t, report.Ready.Message, "KiB: delete some")
		}
	}
	same(t, c.compiled(), first)
}

// Fewer resources in one namespace of a Tenant make room for others, and the snapshot says
// for which.
func TestASnapshotSaysWhoseSpecsAreToBeReadAgain(t *testing.T) {
	c := content{verify.Cluster: {tenantOf("iris")}, "iris": nil}
	for i := range 6 {
		name := fmt.Sprintf("iris-%d", i)
		c[verify.Namespace(name)] = taking(name, 48+i)
	}
	s := c.compiled()
	crowded := func(namespace string, size int) bool {
		return s.Crowded(resource.Share{Namespace: namespace}, size)
	}
	require.True(t, crowded("iris-5", 53<<16))
	require.False(t, crowded("iris-5", 1<<16))
	require.False(t, crowded("iris-5", 65<<16), "it is past its own limit, and counts for nothing")
	require.True(t, crowded("iris-new", 53<<16), "it is not compiled yet")
	require.False(t, crowded("shop", 64<<16), "no Tenant has it")
	require.False(t, crowded("iris", 64<<16), "the home namespace comes first")
	next, _ := s.Next(resolve.Group(content{"iris-0": taking("iris-0", 1)}.objects("iris-0")).Only("iris-0"), nil)
	since := func(is, was *resolve.Snapshot) []verify.Namespace {
		_, crowded := is.ChangedSince(was)
		return crowded
	}
	require.ElementsMatch(t, []verify.Namespace{"iris-5"}, since(next, s))
	require.ElementsMatch(t, []verify.Namespace{"iris-5"}, since(s, next))
	free, _ := s.Next(resolve.Group(resource.Objects{}).Only(verify.Cluster), nil)
	require.ElementsMatch(t, []verify.Namespace{"iris-5"}, since(free, s))
}
