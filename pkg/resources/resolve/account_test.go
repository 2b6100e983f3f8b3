package resolve_test

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/memory"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// content is what the snapshots of these tests are compiled from.
type content map[verify.Namespace][]v1beta1.Object

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

func (c content) compiled() *resolve.Snapshot {
	s, _ := written.Compiled(c.objects(slices.Collect(maps.Keys(c))...))
	return s
}

// tenantOf is a Tenant with a prefix.
func tenantOf(name string, members ...string) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	tenant.Spec.HomeNamespace, tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix = name, members, name+"-"
	return tenant
}

// weighing is a namespace that allows images of its own name and weighs about so many MiB: 2 KiB
// less for each, and 7 KiB for the policy. Its Verifiers are broken, so that it is compiled soon.
func weighing(namespace string, mib int) []v1beta1.Object {
	lax := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lax"}}
	lax.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{namespace + ".example.com/**"}, Action: v1beta1.RuleActionAllow}}
	list := []v1beta1.Object{lax}
	for i := range mib {
		heavy := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("heavy-", i)}}
		heavy.Spec.Type, heavy.Spec.Attestation = "None", &v1beta1.AttestationVerifier{Expression: strings.Repeat("x", 7616)}
		list = append(list, heavy)
	}
	return list
}

// exceptionsOf are n exceptions of a namespace, each with so many images.
func exceptionsOf(namespace string, n, images int) []v1beta1.Object {
	var list []v1beta1.Object
	for i := range n {
		x := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("x%02d", i), CreationTimestamp: metav1.NewTime(born)}}
		x.Spec.Reason, x.Spec.Until = "OPS-1", born.Add(time.Hour).Format(time.RFC3339)
		for j := range images {
			x.Spec.Images = append(x.Spec.Images, fmt.Sprintf("x.example.com/%s/%d/%d", namespace, i, j))
		}
		list = append(list, x)
	}
	return list
}

// delegating are n ClusterExceptions for the Exceptions of a Tenant.
func delegating(tenant string, n int) []v1beta1.Object {
	var list []v1beta1.Object
	for i := range n {
		x := &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("d%02d", i), CreationTimestamp: metav1.NewTime(born)}}
		x.Spec.Reason, x.Spec.Until = "OPS-1", born.Add(2*time.Hour).Format(time.RFC3339)
		x.Spec.Delegate = &v1beta1.ExceptionDelegation{Images: []string{"x.example.com/**"}, Tenants: []string{tenant}}
		list = append(list, x)
	}
	return list
}

// hoarding is a Tenant with 64 Exceptions in the home namespace and in each of its other namespaces, and with 32
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
	s, _ := written.Compiled(o)
	kept := memory.InUse() - before
	t.Logf("%d KiB are kept", kept>>10)
	require.Less(t, kept, 32<<20, "in each namespace an Exception of the home namespace takes a few words, whatever delegates it")
	require.Equal(t, "Exception iris/x63", by(t, s, "iris-255", "x.example.com/iris/63/0:1", soon))
	require.Empty(t, by(t, s, "iris-255", "x.example.com/iris/63/0:1", born.Add(time.Hour)))
	runtime.KeepAlive(o)
}

// BenchmarkAChangeAmongManyExceptions changes the home namespace of a Tenant, which concerns all of its
// namespaces, and one of these.
func BenchmarkAChangeAmongManyExceptions(b *testing.B) {
	c := hoarding(256)
	s := c.compiled()
	for _, namespace := range []verify.Namespace{"iris", "iris-100"} {
		b.Run(string(namespace), func(b *testing.B) {
			changed := c.objects(namespace)
			for b.Loop() {
				s.Next(resolve.Group(changed).Only(namespace), nil)
			}
		})
	}
}

// The start of a server whose one Tenant has many namespaces just below their limit.
func BenchmarkAStartWithAHeavyTenant(b *testing.B) {
	c := content{verify.Cluster: {tenantOf("iris")}}
	for i := range 64 {
		name := fmt.Sprintf("iris-%02d", i)
		for j := range 140 {
			p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprint("p", j)}}
			p.Spec.Rules = []v1beta1.PolicyRule{{Images: slices.Repeat([]string{"r.io/" + strings.Repeat("a/", 30) + "*"}, 64), Action: v1beta1.RuleActionDeny}}
			c[verify.Namespace(name)] = append(c[verify.Namespace(name)], p)
		}
	}
	before := memory.InUse()
	var s *resolve.Snapshot
	for b.Loop() {
		s = c.compiled()
	}
	b.ReportMetric(float64(memory.InUse()-before)/(1<<20), "MiB")
	runtime.KeepAlive(s)
}

// served returns the namespaces, of some, that allow their own images.
func served(t *testing.T, s *resolve.Snapshot, namespaces ...verify.Namespace) []verify.Namespace {
	t.Helper()
	var found []verify.Namespace
	for _, namespace := range namespaces {
		if written.Verdict(t, s, namespace, string(namespace)+".example.com/app").Outcome() == policy.Allowed {
			found = append(found, namespace)
		}
	}
	return found
}

func TestTheNamespacesOfATenantHaveOneLimitTogetherAndTheHeaviestAreDenied(t *testing.T) {
	all := []verify.Namespace{"iris", "iris-a", "iris-b", "iris-c", "iris-d", "iris-e", "iris-f", "rose", "shop"}
	c := content{verify.Cluster: {tenantOf("iris"), tenantOf("rose")}, "iris": weighing("iris", 8), "iris-a": weighing("iris-a", 7),
		"iris-b": weighing("iris-b", 1),
		"iris-c": weighing("iris-c", 6), "iris-d": weighing("iris-d", 6), "iris-e": weighing("iris-e", 7), "rose": weighing("rose", 7), "shop": weighing("shop", 7)}
	s := c.compiled()
	require.Equal(t, []verify.Namespace{"iris", "iris-a", "iris-b", "iris-c", "iris-d", "rose", "shop"}, served(t, s, all...),
		"the home namespace first, then those that weigh least, then by name: 8, 1, 6, 6 and 7 of 32 MiB")
	const why = "the resources of Tenant iris take more than 32768 KiB once they are compiled, the limit of all its namespaces together, and the largest " +
		"namespaces are denied first; " +
		"those of namespace iris-e take about 7161 KiB, the largest is Verifier iris-e/heavy-0 with 1022 KiB: shorten expressions"
	require.Contains(t, s.For("iris-e").Tiers[0].Judge.Why(), why)
	for source, report := range conditions.Reports(s, "iris-e") {
		require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason, source)
		require.Contains(t, report.Ready.Message, why, source)
	}
	for _, change := range []struct {
		name   string
		of     verify.Namespace
		to     []v1beta1.Object
		denied []verify.Namespace // of Tenant iris
	}{
		{"a light one grows, and the heaviest are denied", "iris-b", weighing("iris-b", 6), []verify.Namespace{"iris-a", "iris-e"}},
		{"it is too heavy by itself, and counts for nothing", "iris-b", weighing("iris-b", 9), []verify.Namespace{"iris-b", "iris-e"}},
		{"another shrinks, and the others fit", "iris-a", weighing("iris-a", 1), []verify.Namespace{"iris-b"}},
		{"a namespace appears", "iris-f", weighing("iris-f", 5), []verify.Namespace{"iris-b", "iris-e"}},
		{"a namespace is deleted", "iris-c", nil, []verify.Namespace{"iris-b"}},
		{"home shrinks, which concerns all", "iris", weighing("iris", 7), []verify.Namespace{"iris-b"}},
	} {
		if c[change.of] = change.to; change.to == nil {
			delete(c, change.of)
		}
		before := s
		s, _ = s.Next(resolve.Group(c.objects(change.of)).Only(change.of), nil)
		var want []verify.Namespace
		for _, namespace := range all {
			if s.Has(namespace) && !slices.Contains(change.denied, namespace) {
				want = append(want, namespace)
			}
		}
		require.Equal(t, want, served(t, s, all...), change.name)
		same(t, c.compiled(), s)
		for _, other := range []verify.Namespace{"rose", "shop", verify.Cluster} {
			require.Same(t, before.For(other), s.For(other), change.name)
		}
	}
}

// The statuses of what a change denies elsewhere are written with those of what changed.
func TestASnapshotSaysWhatAChangeConcerned(t *testing.T) {
	c := content{verify.Cluster: {tenantOf("iris")}, "iris": nil, "iris-a": weighing("iris-a", 8), "shop": weighing("shop", 1)}
	for _, name := range []string{"iris-b", "iris-c", "iris-d", "iris-e"} {
		c[verify.Namespace(name)] = weighing(name, 6)
	}
	s := c.compiled()
	for _, row := range []struct {
		mib  int
		want []verify.Namespace
	}{{5, []verify.Namespace{"iris-b"}}, {7, []verify.Namespace{"iris-a", "iris-b"}}, {8, []verify.Namespace{"iris-a", "iris-b"}},
		{1, []verify.Namespace{"iris-b"}}} {
		next, _ := s.Next(resolve.Group(content{"iris-b": weighing("iris-b", row.mib)}.objects("iris-b")).Only("iris-b"), nil)
		require.ElementsMatch(t, row.want, next.ChangedSince(s))
		s = next
	}
}

func TestOnlyWhatAnAdminSaysGivesANamespaceALimitOfItsOwn(t *testing.T) {
	c := content{verify.Cluster: {tenantOf("iris")}}
	var all []verify.Namespace
	for _, name := range []verify.Namespace{"iris", "iris-a", "iris-b", "iris-c", "iris-d"} {
		c[name], all = weighing(string(name), 7), append(all, name)
	}
	s := c.compiled()
	require.Equal(t, all[:4], served(t, s, all...))
	quota := &v1beta1.ClusterQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
	quota.Spec.Namespaces, quota.Spec.MaxInFlight = []string{"iris-b"}, 70
	older := tenantOf("rose", "iris-b")
	older.CreationTimestamp = metav1.NewTime(born)
	younger := tenantOf("iris")
	younger.CreationTimestamp = metav1.NewTime(soon)
	for name, cluster := range map[string][]v1beta1.Object{"its own account": {tenantOf("iris"), quota}, "another Tenant": {younger, older}, "no Tenant": nil} {
		c[verify.Cluster] = cluster
		next, _ := s.Next(resolve.Group(c.objects(verify.Cluster)).Only(verify.Cluster), nil)
		same(t, c.compiled(), next)
		require.Empty(t, next.For("iris-d").Tiers[0].Judge.Why(), name)
		back, _ := next.Next(resolve.Group(resource.Objects{Resources: []v1beta1.Object{tenantOf("iris")}}).Only(verify.Cluster), nil)
		require.Equal(t, all[:4], served(t, back, all...), name)
	}
}

func TestTheExceptionsOfATenantHaveOneLimitTogetherAndDenyNothing(t *testing.T) {
	c := content{verify.Cluster: append(delegating("iris", 1), tenantOf("iris")), "iris": append(exceptionsOf("iris", 64, 10), weighing("iris", 1)...)}
	var all []verify.Namespace
	for i := range 6 {
		name := fmt.Sprintf("iris-%d", i)
		c[verify.Namespace(name)], all = append(exceptionsOf(name, 64, 18), weighing(name, 1)...), append(all, verify.Namespace(name))
	}
	c["iris-5"] = append(exceptionsOf("iris-5", 1, 1), weighing("iris-5", 1)...)
	s := c.compiled()
	require.Equal(t, all, served(t, s, all...), "exceptions deny nothing")
	var inForce []verify.Namespace
	for _, namespace := range append(all, "iris") {
		if by(t, s, namespace, fmt.Sprintf("x.example.com/%s/0/0:1", namespace), soon) != "" {
			inForce = append(inForce, namespace)
		}
		require.NotEmpty(t, by(t, s, namespace, "x.example.com/iris/0/0:1", soon), "those of the home namespace count everywhere")
	}
	require.Equal(t, []verify.Namespace{"iris-0", "iris-1", "iris-2", "iris-3", "iris-5", "iris"}, inForce)
	report := written.ReportOn(t, s, "Exception iris-4/x00")
	require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason)
	require.Equal(t, "it is not in force: the exceptions of Tenant iris take more than 4096 KiB, the limit of all its namespaces together, and the namespaces "+
		"with the largest lose theirs first; delete some", report.Ready.Message)
	require.Equal(t, policy.ReasonNotInForce, report.Effective.Reason)
	c["iris-0"] = weighing("iris-0", 1)
	s, _ = s.Next(resolve.Group(c.objects("iris-0")).Only("iris-0"), nil)
	same(t, c.compiled(), s)
	require.NotEmpty(t, by(t, s, "iris-4", "x.example.com/iris-4/0/0:1", soon))
}

// drawNamespace generates the resources of one of some namespaces, around all limits.
func drawNamespace(rt *rapid.T, namespaces []string) (verify.Namespace, []v1beta1.Object) {
	name := rapid.SampledFrom(namespaces).Draw(rt, "namespace")
	list := weighing(name, rapid.SampledFrom([]int{0, 0, 5, 7, 8, 9}).Draw(rt, "MiB"))
	if n := rapid.SampledFrom([]int{0, 1, 64}).Draw(rt, "exceptions"); n > 0 {
		list = append(list, exceptionsOf(name, n, rapid.SampledFrom([]int{1, 12, 18}).Draw(rt, "images"))...)
	}
	for i := range rapid.SampledFrom([]int{0, 1, 60}).Draw(rt, "Verifiers") { // they weigh what the key does that they share
		v := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprint("v", i)}}
		v.Spec.Type = v1beta1.VerifierTypeCosign
		v.Spec.Cosign = &v1beta1.CosignVerifier{
			Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{{Kind: v1beta1.TrustStoreKindClusterTrustStore, Name: "shared"}},
				TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}
		list = append(list, v)
	}
	return verify.Namespace(name), list
}

// drawCluster generates resources of the cluster that change accounts, weights and exceptions.
func drawCluster(rt *rapid.T, key string) []v1beta1.Object {
	list := delegating("iris", rapid.IntRange(0, 2).Draw(rt, "delegations"))
	for _, name := range []string{"iris", "rose"} {
		if rapid.IntRange(0, 3).Draw(rt, name) > 0 {
			tenant := tenantOf(name, rapid.SampledFrom([][]string{nil, {"shop"}, {"iris-b"}}).Draw(rt, "members")...)
			tenant.Spec.Verification.PolicyLevel = rapid.SampledFrom([]v1beta1.PolicyLevel{"", v1beta1.PolicyLevelTenant}).Draw(rt, "decides")
			list = append(list, tenant)
		}
	}
	if n := rapid.SampledFrom([]int{0, 1, 16}).Draw(rt, "keys"); n > 0 {
		shared := &v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
		shared.Spec.Type, shared.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, strings.Repeat(key, n)
		list = append(list, shared)
	}
	if rapid.Bool().Draw(rt, "quota") {
		quota := &v1beta1.ClusterQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
		quota.Spec.Namespaces, quota.Spec.MaxInFlight = []string{"iris-a"}, 70
		list = append(list, quota)
	}
	return list
}

// Whatever happens in whatever order, a snapshot is as if it had been compiled at once. Each
// check compiles up to ten times, so there are few unless -rapid.checks asks for more.
func TestAHistoryOfChangesIsAsIfEverythingWereCompiled(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		require.NoError(t, checks.Value.Set("25"))
		t.Cleanup(func() { require.NoError(t, checks.Value.Set(checks.DefValue)) })
	}
	key := string(written.NewKey(t).PEM)
	namespaces := []string{"iris", "iris-a", "iris-b", "iris-c", "iris-d", "rose", "rose-a", "shop"}
	rapid.Check(t, func(rt *rapid.T) {
		c := content{verify.Cluster: drawCluster(rt, key)}
		for range rapid.IntRange(0, 6).Draw(rt, "at first") {
			namespace, list := drawNamespace(rt, namespaces)
			c[namespace] = list
		}
		s := c.compiled()
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			before, changed := s, verify.Cluster
			switch rapid.IntRange(0, 5).Draw(rt, "change") {
			case 0:
				c[verify.Cluster] = drawCluster(rt, key)
				s, _ = s.Next(resolve.Group(c.objects(verify.Cluster)).Only(verify.Cluster), nil)
			case 1:
				changed = verify.Namespace(rapid.SampledFrom(namespaces).Draw(rt, "gone"))
				delete(c, changed)
				s, _ = s.Next(resolve.Group(resource.Objects{}).Only(changed), nil)
			default:
				var list []v1beta1.Object
				changed, list = drawNamespace(rt, namespaces)
				c[changed] = list
				s, _ = s.Next(resolve.Group(c.objects(changed)).Only(changed), nil)
			}
			for _, other := range before.Namespaces() {
				if tenant := before.Tenant(other); changed != verify.Cluster && other != changed && (tenant == "" || tenant != s.Tenant(changed)) {
					require.Same(rt, before.For(other), s.For(other), "%s is of another Tenant than %s", other, changed)
				}
			}
			same(rt, c.compiled(), s)
		}
	})
}
