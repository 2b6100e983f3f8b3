package compile_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// tester is a test, or a check of a property.
type tester interface {
	require.TestingT
	Helper()
}

// same requires that two snapshots say the same of every namespace.
func same(t tester, want, got *compile.Snapshot) {
	t.Helper()
	require.Equal(t, want.Namespaces(), got.Namespaces())
	for _, n := range append(want.Namespaces(), "iris-dev-new", "nobody") {
		a, b := want.For(n), got.For(n)
		require.Equal(t, [4]any{a.Generation, a.UID, a.Account, a.Limits}, [4]any{b.Generation, b.UID, b.Account, b.Limits}, n)
		require.Equal(t, a.Exceptions, b.Exceptions, n)
		require.Equal(t, want.Explain(n), got.Explain(n), n)
		require.Equal(t, want.Reports(n), got.Reports(n), n)
		require.Equal(t, want.Tags(n), got.Tags(n), n)
	}
}

func TestAChangeOfAHomeIsLiveInItsMembersAndTouchesNoOther(t *testing.T) {
	keys, others := inlineKey(string(newKey(t).PEM)), inlineKey(string(newKey(t).PEM))
	fixed := []string{object("Tenant", "", "iris", iris), object("Tenant", "", "rose", "homeNamespace: rose\nnamespaces: [rose-web]"),
		namespace("iris-web", "2"), namespace("iris-dev-a", "3"), namespace("rose", "4"), namespace("rose-web", "5"), namespace("alone", "6"),
		object("VerificationPolicy", "rose", "p", allowing("rose.example.com")), object("ClusterVerificationPolicy", "", "c", "defaultAction: Allow")}
	before := []string{namespace("iris", "1"), object("TrustStore", "iris", "keys", keys), object("Verifier", "iris", "release", cosignVerifier)}
	was, _ := compiled(objects(t, append(fixed, before...)...))
	for name, after := range map[string][]string{
		"another key": {namespace("iris", "1"), object("TrustStore", "iris", "keys", others), object("Verifier", "iris", "release", cosignVerifier)},
		"a policy":    append(before, object("VerificationPolicy", "iris", "p", allowing("iris.example.com"))),
		"broken":      {namespace("iris", "1"), object("Verifier", "iris", "release", cosignVerifier)},
		"deleted":     {},
	} {
		t.Run(name, func(t *testing.T) {
			whole, _ := compiled(objects(t, append(fixed, after...)...))
			got, _ := was.With("iris", compile.Group(objects(t, after...)), nil)
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
		got, _ := was.With("iris", compile.Group(resource.Objects{Namespaces: []corev1.Namespace{ending("iris")}}), nil)
		require.Equal(t, policy.Denied, verdict(t, got, "iris-web", "r.example.com/app").Outcome())
		back, _ := got.With("iris", compile.Group(objects(t, before...)), nil)
		require.Equal(t, was.For("iris-web").Generation, back.For("iris-web").Generation, "results are found again")
	})
}

func TestANamespaceWithThePrefixIsAMemberAtOnce(t *testing.T) {
	fixed := []string{object("Tenant", "", "iris", iris), namespace("iris", "1"), object("VerificationPolicy", "iris", "p", allowing("iris.example.com"))}
	was, _ := compiled(objects(t, fixed...))
	require.Equal(t, policy.Allowed, verdict(t, was, "iris-dev-new", "iris.example.com/app").Outcome(), "even before the snapshot knows it")
	got, _ := was.With("iris-dev-new", compile.Group(objects(t, namespace("iris-dev-new", "7"))), nil)
	whole, _ := compiled(objects(t, append(fixed, namespace("iris-dev-new", "7"))...))
	same(t, whole, got)
	require.Equal(t, []verify.Namespace{"iris", "iris-dev-new"}, got.Members("iris"))
	require.Equal(t, policy.Allowed, verdict(t, got, "iris-dev-new", "iris.example.com/app").Outcome())
}

func TestAChangeOfTenantsLinksOldAndNewMembers(t *testing.T) {
	keys := inlineKey(string(newKey(t).PEM))
	fixed := objects(t, namespace("iris", "1"), namespace("iris-web", "2"), namespace("rose", "3"), namespace("shop", "4"), namespace("alone", "5"),
		object("VerificationPolicy", "iris", "p", allowing("iris.example.com")), object("VerificationPolicy", "rose", "p", allowing("rose.example.com")),
		object("TrustStore", "shop", "keys", keys), object("Verifier", "shop", "own", cosignVerifier),
		object("Verifier", "iris", "v", "type: Cosign\ncosign: {keys: {trustStoreRefs: [{kind: ClusterTrustStore, name: shared}], insecureIgnoreTransparencyLog: true}}"))
	clusters := map[string][]string{
		"nobody":         {},
		"iris":           {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]")},
		"both":           {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]"), object("Tenant", "", "rose", "homeNamespace: rose\nnamespaces: [shop]")},
		"cluster":        {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]\nverification: {policyLevel: Cluster}")},
		"a quota":        {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"), object("ClusterQuota", "", "q", "tenants: [iris]\nmaxInFlight: 70")},
		"a shared key":   {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"), object("ClusterTrustStore", "", "shared", keys)},
		"Pin":            {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"), object("ClusterVerificationPolicy", "", "t", "tags: Pin\ndefaultAction: Allow")},
		"a policy":       {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"), object("ClusterVerificationPolicy", "", "t", "defaultAction: Allow")},
		"a ClusterStore": {object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, shop]"), object("ClusterStore", "", "s", "registries: [s.example.com]")},
	}
	for from := range clusters {
		for to, documents := range clusters {
			t.Run(fmt.Sprintf("from %s to %s", from, to), func(t *testing.T) {
				with := func(documents []string) resource.Objects {
					o := objects(t, documents...)
					o.Namespaces, o.Resources = fixed.Namespaces, append(o.Resources, fixed.Resources...)
					return o
				}
				was, _ := compiled(with(clusters[from]))
				whole, _ := compiled(with(documents))
				got, _ := was.WithCluster(compile.Group(objects(t, documents...)), nil)
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
	o := objects(t, object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web, gone]\nnamespacePrefix: iris-dev-"),
		namespace("iris", "1"), namespace("iris-web", "2"), namespace("iris-dev-a", "3"), namespace("rose", "4"))
	o.Namespaces = append(o.Namespaces, ending("iris-dev-b"))
	snapshot, _ := compiled(o)
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "iris", State: "Home"}, {Name: "gone", State: "Missing"}, {Name: "iris-dev-a", State: "Active"},
		{Name: "iris-dev-b", State: "Terminating"}, {Name: "iris-web", State: "Active"}}, snapshot.TenantNamespaces("iris"))
	require.Equal(t, []verify.Namespace{"iris", "iris-dev-a", "iris-web"}, snapshot.Members("iris"))
	require.Nil(t, snapshot.TenantNamespaces("nobody"))
	for i := range 300 {
		o.Namespaces = append(o.Namespaces, objects(t, namespace(fmt.Sprintf("iris-dev-%03d", i), "1")).Namespaces...)
	}
	snapshot, _ = compiled(o)
	require.Len(t, snapshot.TenantNamespaces("iris"), 256)
	require.Len(t, snapshot.Members("iris"), 303, "the limit is the status's")
	require.Equal(t, "rules of the home namespace iris are in force in 304 namespaces", snapshot.Reports(verify.Cluster)[policy.ObjectRef{Kind: "Tenant", Name: "iris"}].Effective.Message)
}
