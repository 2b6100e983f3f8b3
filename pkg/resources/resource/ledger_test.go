package resource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// many are policies of 60 KiB in one namespace.
func many(n int) []v1beta1.Object {
	all := make([]v1beta1.Object, n)
	for i := range all {
		p := policyOf(60 << 10)
		p.Name = fmt.Sprint("p", i)
		p.UID = types.UID(p.Name)
		all[i] = p
	}
	return all
}

func nowhere(resource.Share, int) bool { return false }

func keepAll(t *testing.T, l *resource.Ledger, objects []v1beta1.Object) (missing int) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, l.Keep(object))
		if err := resource.Missing(object); err != nil {
			require.ErrorContains(t, err, "too much was kept of namespace team-a")
			require.Equal(t, policy.ReasonUnreadable, resource.ReasonOf(err))
			missing++
		}
	}
	return missing
}

func TestSpecsThatANamespaceHasNoRoomForAreWithheldWithTheirSize(t *testing.T) {
	var l resource.Ledger
	objects, same := many(100), many(100)
	missing := keepAll(t, &l, objects)
	require.InDelta(t, 100-resource.MaxNamespaceBytes/(60<<10), missing, 2)
	require.Equal(t, missing, keepAll(t, &l, objects), "a second look changes nothing")
	total := 0
	for i, object := range objects {
		total += resource.Size(object)
		require.Equal(t, resource.Size(same[i]), resource.Size(object), "what is withheld has the size that it had")
		require.Equal(t, object.GetGeneration(), same[i].GetGeneration(), "its status is written for this generation")
	}
	require.Empty(t, resource.ReadAgain(objects, nowhere), "all together do not fit")
	err := resource.Share{Namespace: "team-a"}.Excess(map[string]int{"VerificationPolicy": total, "Store": 1 << 20, "Verifier": 0})
	require.EqualError(t, err, "the specs of the resources of namespace team-a take 7053 KiB, the limit is 4096 KiB (VerificationPolicy 6029 KiB, Store 1024 KiB): delete some")
	require.Equal(t, policy.ReasonLimitExceeded, resource.ReasonOf(err))
}

func TestOtherNamespacesAndExceptionsAndTheClusterHaveRoomOfTheirOwn(t *testing.T) {
	var l resource.Ledger
	require.NotZero(t, keepAll(t, &l, many(100)))
	other := policyOf(60 << 10)
	other.Namespace = "team-b"
	exception := &v1beta1.Exception{}
	exception.Namespace, exception.Spec.Images = "team-a", []string{strings.Repeat("x", 60<<10)}
	for _, object := range []v1beta1.Object{other, exception} {
		require.NoError(t, l.Keep(object))
		require.NoError(t, resource.Missing(object))
	}
	for i := range 100 {
		cluster := &v1beta1.ClusterVerificationPolicy{Spec: policyOf(60 << 10).Spec}
		cluster.Name = fmt.Sprint(i)
		require.NoError(t, l.Keep(cluster))
		require.NoError(t, resource.Missing(cluster))
	}
}

func TestAChangeReplacesWhatItCountedFor(t *testing.T) {
	var l resource.Ledger
	for range 200 {
		require.Zero(t, keepAll(t, &l, many(1)))
	}
	full := many(100)
	keepAll(t, &l, full)
	again := many(1)
	require.Zero(t, keepAll(t, &l, again), "what does not grow is always kept")
}

func TestWhatIsGoneMakesRoomOnceItIsSettled(t *testing.T) {
	var l resource.Ledger
	objects := many(100)
	require.NotZero(t, keepAll(t, &l, objects))
	left := objects[98:]
	require.Len(t, resource.ReadAgain(left, nowhere), 2, "they fit now, so they are read again")
	require.NotZero(t, keepAll(t, &l, many(100)[98:]), "nobody has said yet that the others are gone")
	l.Settle("team-a", left)
	require.Zero(t, keepAll(t, &l, many(100)[98:]))
	l.Settle("team-a", objects)
	require.NotZero(t, keepAll(t, &l, many(200)[100:]))
}

func TestTheOrderInWhichObjectsComeChangesNoSize(t *testing.T) {
	var forth, back resource.Ledger
	total := func(l *resource.Ledger, objects []v1beta1.Object) (total int) {
		require.NotZero(t, keepAll(t, l, objects))
		for _, object := range objects {
			total += resource.Size(object)
		}
		return total
	}
	reversed := many(100)
	for i, object := range many(100) {
		reversed[99-i] = object
	}
	require.Equal(t, total(&forth, many(100)), total(&back, reversed))
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

// written is one policy of some 60 KiB in a namespace, as it comes from an API server.
func written(namespace string, number int) *v1beta1.VerificationPolicy {
	p := policyOf(60 << 10)
	p.Namespace, p.Name = namespace, fmt.Sprint("p", number)
	p.UID = types.UID(namespace + p.Name)
	return p
}

// keptOf returns how much a ledger keeps of some namespaces that come with 2 MiB each.
func keptOf(t *testing.T, l *resource.Ledger, namespaces ...string) (kept int) {
	t.Helper()
	for _, namespace := range namespaces {
		for i := range 34 {
			p := written(namespace, i)
			require.NoError(t, l.Keep(p))
			if resource.Missing(p) == nil {
				kept += resource.Size(p)
			}
		}
	}
	return kept
}

func namesOf(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

func tenantWith(name string, members ...string) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{}
	tenant.Name, tenant.Spec.HomeNamespace, tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix = name, name, members, name+"-"
	return tenant
}

func TestWhatIsKeptOfTheNamespacesOfATenantIsBounded(t *testing.T) {
	var l resource.Ledger
	require.NoError(t, l.Keep(tenantWith("iris")))
	require.NoError(t, l.Keep(tenantWith("rose")))
	require.LessOrEqual(t, keptOf(t, &l, namesOf("iris-", 12)...), 16<<20)
	for _, other := range []string{"rose-a", "shop"} {
		require.InDelta(t, 34*60<<10, keptOf(t, &l, other), 34<<10, "%s has room of its own", other)
	}
}

func TestTheExceptionsOfATenantHaveRoomOfTheirOwn(t *testing.T) {
	var l resource.Ledger
	require.NoError(t, l.Keep(tenantWith("iris")))
	keptOf(t, &l, namesOf("iris-", 9)...)
	kept := 0
	for _, namespace := range namesOf("iris-", 100) {
		exception := &v1beta1.Exception{}
		exception.Namespace, exception.Spec.Images = namespace, []string{strings.Repeat("x", 60<<10)}
		require.NoError(t, l.Keep(exception))
		if resource.Missing(exception) == nil {
			kept += resource.Size(exception)
		}
	}
	require.InDelta(t, 4<<20, kept, 64<<10)
}

func TestWhatIsGoneOrChangesHandsMakesRoomForTheTenantsOtherNamespaces(t *testing.T) {
	var l resource.Ledger
	full := namesOf("iris-", 9)
	known := tenantWith("iris")
	require.NoError(t, l.Keep(known))
	require.Less(t, keptOf(t, &l, full...), 9*2_000_000)
	missing := func(namespace string) bool {
		p := written(namespace, 99)
		require.NoError(t, l.Keep(p))
		return resource.Missing(p) != nil
	}
	require.True(t, missing("iris"), "the home namespace, too: whose specs are kept does not depend on what they are for")
	l.Settle("iris-000", nil)
	require.False(t, missing("iris"))
	keptOf(t, &l, full...)
	require.True(t, missing("iris-x"))
	known.Status.ObservedGeneration++
	require.NoError(t, l.Keep(known))
	require.True(t, missing("iris-x"), "a status changes nothing")
	l.Settle("", []v1beta1.Object{known, tenantWith("rose", full[1])})
	require.False(t, missing("iris-x"), "another Tenant names what the first holds by its prefix")
	l.Settle("", []v1beta1.Object{known})
	keptOf(t, &l, full...)
	l.Settle("", nil)
	require.False(t, missing("iris-x"), "there is no Tenant")
	require.NoError(t, l.Keep(known))
	require.True(t, missing("iris-y"))
}
