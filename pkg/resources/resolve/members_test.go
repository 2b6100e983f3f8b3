package resolve_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// tester is a test, or a check of a property.
type tester interface {
	require.TestingT
	Helper()
}

// same requires that two snapshots say the same of every namespace.
func same(t tester, want, got *resolve.Snapshot) {
	t.Helper()
	require.Equal(t, want.Namespaces(), got.Namespaces())
	for _, n := range append(want.Namespaces(), "iris-dev-new", "nobody") {
		a, b := want.For(n), got.For(n)
		require.Equal(t, [4]any{a.Generation, a.UID, a.Account, a.Limits}, [4]any{b.Generation, b.UID, b.Account, b.Limits}, n)
		require.Equal(t, a.Exceptions, b.Exceptions, n)
		require.Equal(t, want.Explain(n), got.Explain(n), n)
		require.Equal(t, conditions.Reports(want, n), conditions.Reports(got, n), n)
		require.Equal(t, want.Tags(n), got.Tags(n), n)
	}
}

func TestAChangeOfAHomeIsLiveInItsMembersAndTouchesNoOther(t *testing.T) {
	keys, others := written.InlineKey(string(written.NewKey(t).PEM)), written.InlineKey(string(written.NewKey(t).PEM))
	fixed := []string{written.Object("Tenant", "", "iris", written.Iris), written.Object("Tenant", "", "rose", "homeNamespace: rose\nnamespaces: [rose-web]"),
		written.Namespace("iris-web", "2"), written.Namespace("iris-dev-a", "3"), written.Namespace("rose", "4"), written.Namespace("rose-web", "5"),
		written.Namespace("alone", "6"),
		written.Object("VerificationPolicy", "rose", "p", allowing("rose.example.com")), written.Object("ClusterVerificationPolicy", "", "c", "defaultAction: Allow")}
	before := []string{written.Namespace("iris", "1"), written.Object("TrustStore", "iris", "keys", keys),
		written.Object("Verifier", "iris", "release", written.CosignVerifier)}
	was, _ := written.Compiled(written.Objects(t, append(fixed, before...)...))
	for name, after := range map[string][]string{
		"another key": {written.Namespace("iris", "1"), written.Object("TrustStore", "iris", "keys", others),
			written.Object("Verifier", "iris", "release", written.CosignVerifier)},
		"a policy": append(before, written.Object("VerificationPolicy", "iris", "p", allowing("iris.example.com"))),
		"broken":   {written.Namespace("iris", "1"), written.Object("Verifier", "iris", "release", written.CosignVerifier)},
		"deleted":  {},
	} {
		t.Run(name, func(t *testing.T) {
			whole, _ := written.Compiled(written.Objects(t, append(fixed, after...)...))
			got, _ := was.Next(resolve.Group(written.Objects(t, after...)).Only("iris"), nil)
			same(t, whole, got)
			for _, member := range []verify.Namespace{"iris-web", "iris-dev-a", "iris-dev-new"} {
				require.NotEqual(t, was.For(member).Generation, got.For(member).Generation, member)
			}
			for _, other := range []verify.Namespace{"rose", "rose-web", "alone", verify.Cluster} {
				require.Same(t, was.For(other), got.For(other), other)
			}
		})
	}
	t.Run("ending", func(t *testing.T) {
		got, _ := was.Next(resolve.Group(resource.Objects{Namespaces: []corev1.Namespace{ending("iris")}}).Only("iris"), nil)
		require.Equal(t, policy.Denied, written.Verdict(t, got, "iris-web", "r.example.com/app").Outcome())
		back, _ := got.Next(resolve.Group(written.Objects(t, before...)).Only("iris"), nil)
		require.Equal(t, was.For("iris-web").Generation, back.For("iris-web").Generation, "results are found again")
	})
}

func TestANamespaceWithThePrefixIsAMemberAtOnce(t *testing.T) {
	fixed := []string{written.Object("Tenant", "", "iris", written.Iris), written.Namespace("iris", "1"),
		written.Object("VerificationPolicy", "iris", "p", allowing("iris.example.com"))}
	was, _ := written.Compiled(written.Objects(t, fixed...))
	require.Equal(t, policy.Allowed, written.Verdict(t, was, "iris-dev-new", "iris.example.com/app").Outcome(), "even before the snapshot knows it")
	got, _ := was.Next(resolve.Group(written.Objects(t, written.Namespace("iris-dev-new", "7"))).Only("iris-dev-new"), nil)
	whole, _ := written.Compiled(written.Objects(t, append(fixed, written.Namespace("iris-dev-new", "7"))...))
	same(t, whole, got)
	require.Equal(t, []verify.Namespace{"iris", "iris-dev-new"}, got.Candidates()["iris"])
	require.Equal(t, policy.Allowed, written.Verdict(t, got, "iris-dev-new", "iris.example.com/app").Outcome())
}

func TestAChangeOfTenantsLinksOldAndNewMembers(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	fixed := written.Objects(t, written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("rose", "3"), written.Namespace("shop", "4"),
		written.Namespace("alone", "5"),
		written.Object("VerificationPolicy", "iris", "p", allowing("iris.example.com")),
		written.Object("VerificationPolicy", "rose", "p", allowing("rose.example.com")),
		written.Object("TrustStore", "shop", "keys", keys), written.Object("Verifier", "shop", "own", written.CosignVerifier),
		written.Object("Verifier", "iris", "v", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: shared}], "+
			"insecureIgnoreTransparencyLog: true}}"))
	clusters := map[string][]string{
		"nobody": {},
		"iris":   {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]")},
		"both": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"),
			written.Object("Tenant", "", "rose", "homeNamespace: rose\nnamespaces: [shop]")},
		"cluster": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]\nverification: {policyLevel: Cluster}")},
		"a quota": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"),
			written.Object("ClusterQuota", "", "q", "tenants: [iris]\nmaxInFlight: 70")},
		"a shared key": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"),
			written.Object("ClusterTrustStore", "", "shared", keys)},
		"Pin": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"),
			written.Object("ClusterVerificationPolicy", "", "t", "tags: Pin\ndefaultAction: Allow")},
		"a policy": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"),
			written.Object("ClusterVerificationPolicy", "", "t", "defaultAction: Allow")},
		"a ClusterStore": {written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"),
			written.Object("ClusterStore", "", "s", "registries: [s.example.com]")},
	}
	for from := range clusters {
		for to, documents := range clusters {
			t.Run(fmt.Sprintf("from %s to %s", from, to), func(t *testing.T) {
				with := func(documents []string) resource.Objects {
					o := written.Objects(t, documents...)
					o.Namespaces, o.Resources = fixed.Namespaces, append(o.Resources, fixed.Resources...)
					return o
				}
				was, _ := written.Compiled(with(clusters[from]))
				whole, _ := written.Compiled(with(documents))
				got, _ := was.Next(resolve.Group(written.Objects(t, documents...)).Only(verify.Cluster), nil)
				same(t, whole, got)
				if from == "iris" && to == "both" || from == "nobody" {
					require.Equal(t, to == "iris" || to == "both" || to == "nobody" || to == "cluster" || to == "a quota" || to == "a shared key",
						was.For("alone") == got.For("alone"), "who is in no Tenant is not touched by Tenants")
				}
			})
		}
	}
}

func TestTheStatusOfATenantListsItsNamespaces(t *testing.T) {
	o := written.Objects(t, written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, gone]\nnamespacePrefix: iris-dev-"),
		written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("iris-dev-a", "3"), written.Namespace("rose", "4"))
	o.Namespaces = append(o.Namespaces, ending("iris-dev-b"))
	snapshot, _ := written.Compiled(o)
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "iris", State: "Home"}, {Name: "gone", State: "Missing"}, {Name: "iris-dev-a", State: "Active"},
		{Name: "iris-dev-b", State: "Terminating"}, {Name: "iris-web", State: "Active"}}, snapshot.TenantNamespaces("iris"))
	require.Nil(t, snapshot.TenantNamespaces("nobody"))
	for i := range 300 {
		o.Namespaces = append(o.Namespaces, written.Objects(t, written.Namespace(fmt.Sprintf("iris-dev-%03d", i), "1")).Namespaces...)
	}
	snapshot, _ = written.Compiled(o)
	require.Len(t, snapshot.TenantNamespaces("iris"), 256)
	require.Len(t, snapshot.NamespacesOf("iris"), 305, "the limit is the status's")
	require.Equal(t, "rules of the home namespace iris are in force in 304 namespaces",
		conditions.Reports(snapshot, verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "iris"}].Effective.Message)
}
