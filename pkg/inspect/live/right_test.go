package live

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestAMissingRightNamesTheRoleThatGrantsIt(t *testing.T) {
	ours := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "landwaiter.dev", Resource: resource}
	}
	for _, c := range []struct {
		right Right
		want  string
	}{
		{Right{Verb: "list", Resource: ours("clusterverifiers")}, "you cannot list clusterverifiers.landwaiter.dev; ask a cluster admin to bind ClusterRole " +
			"landwaiter-cluster-reader"},
		{Right{Verb: "list", Resource: ours("tenants")}, "you cannot list tenants.landwaiter.dev; only people who may know every team can, with ClusterRole " +
			"landwaiter-tenant-reader"},
		{Right{Verb: "list", Resource: ours("clusterexceptions")}, "you cannot list clusterexceptions.landwaiter.dev; only people who may know every team can, " +
			"with ClusterRole landwaiter-tenant-reader"},
		{Right{Verb: "get", Resource: ours("tenants"), Name: "iris"}, "you cannot get tenants.landwaiter.dev/iris; ask a cluster admin to run landwaiter tenant " +
			"add iris, which lets a team read its own Tenant"},
		{Right{Verb: "list", Resource: ours("verifiers"), Namespace: "team-a"},
			"you cannot list verifiers.landwaiter.dev in namespace team-a; ask an admin of the namespace to bind ClusterRole landwaiter-reader there"},
		{Right{Verb: "list", Resource: schema.GroupResource{Resource: "pods"}, Namespace: "team-a"},
			"you cannot list pods in namespace team-a; ask an admin of the namespace to bind ClusterRole landwaiter-reader there"},
		{Right{Verb: "list", Resource: ours("verifiers")}, "you cannot list verifiers.landwaiter.dev; name a namespace of yours with --namespace; those who may " +
			"read all teams' rules get ClusterRole landwaiter-reader from a cluster admin"},
		{Right{Verb: "list", Resource: schema.GroupResource{Group: "openreports.io", Resource: "reports"}, Namespace: "team-a"},
			"you cannot list reports.openreports.io in namespace team-a; ask a cluster admin to bind ClusterRole landwaiter-report-reader"},
		{Right{Verb: "get", Resource: schema.GroupResource{Resource: "namespaces"}, Name: "team-a"},
			"you cannot get namespaces/team-a; ask an admin of the namespace to bind ClusterRole landwaiter-reader there"},
		{
			Right{Verb: "get", Resource: schema.GroupResource{Resource: "secrets"}, Namespace: "team-a", Name: "key"},
			"you cannot get secrets/key in namespace team-a; landwaiter status shows the last verdict without it; an admin of the namespace grants it for this one: " +
				"kubectl create role NAME -n team-a --verb=get --resource=secrets --resource-name=key, and a RoleBinding",
		},
	} {
		require.Equal(t, c.want, c.right.String())
	}
}

func TestAllThatIsUnreadableIsNamedAtOnce(t *testing.T) {
	list := func(plural string) Right {
		return Right{Verb: "list", Resource: schema.GroupResource{Group: "landwaiter.dev", Resource: plural}}
	}
	s := State{Namespaces: []verify.Namespace{"a", "b"},
		Rights: []Right{list("clusterexceptions"), list("clusterverifiers"), list("clusterstores"), list("tenants")},
		unsure: map[verify.Namespace]string{"b": "you cannot list deployments.apps", "a": "you cannot list deployments.apps"}}
	s.Objects.Person = true
	for _, kind := range []string{"ClusterException", "ClusterVerifier", "ClusterStore", "Tenant"} {
		s.Objects.Unreadable = append(s.Objects.Unreadable,
			resource.Unreadable{Source: policy.ObjectRef{Kind: kind}, Why: list(strings.ToLower(kind) + "s").String()})
	}
	snapshot, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(s.Objects), nil)
	require.Equal(t, []string{
		"you cannot read everything that decides in namespace a, namespace b, so the images there are undecided:",
		"- you cannot list clusterverifiers, clusterstores; ask a cluster admin to bind ClusterRole landwaiter-cluster-reader",
		"- you cannot list tenants.landwaiter.dev; only people who may know every team can, with ClusterRole landwaiter-tenant-reader",
		"you cannot list deployments.apps",
	}, s.Unreadable(snapshot), "an exception only lifts denials, which say so")
	require.Empty(t, State{}.Unreadable(snapshot))
}

func TestOnlyWhatANamespaceNeedsIsAskedForFirst(t *testing.T) {
	at := func(verb, group, plural, namespace, name string) Right {
		return Right{Verb: verb, Resource: schema.GroupResource{Group: group, Resource: plural}, Namespace: namespace, Name: name}
	}
	rights := map[policy.ObjectRef]Right{
		{Kind: "Verifier", Namespace: "a"}:           at("list", "landwaiter.dev", "verifiers", "a", ""),
		{Kind: "VerificationPolicy", Namespace: "a"}: at("list", "landwaiter.dev", "verificationpolicies", "a", ""),
		{Kind: "ClusterVerifier"}:                    at("list", "landwaiter.dev", "clusterverifiers", "", ""),
		{Kind: "Tenant"}:                             at("get", "landwaiter.dev", "tenants", "", "a"),
	}
	s := State{Namespaces: []verify.Namespace{"a"}}
	s.Objects.Person = true
	for source, right := range rights {
		s.Rights = append(s.Rights, right)
		s.Objects.Unreadable = append(s.Objects.Unreadable, resource.Unreadable{Source: source, Why: right.String()})
	}
	snapshot, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(s.Objects), nil)
	said := strings.Join(s.Unreadable(snapshot), "\n")
	require.Contains(t, said, "verifiers")
	require.Contains(t, said, "ask an admin of the namespace to bind ClusterRole landwaiter-reader there")
	require.Contains(t, said, "get tenants.landwaiter.dev/a")
	require.NotContains(t, said, "clusterverifiers")
	require.NotContains(t, said, "landwaiter-cluster-reader")
	require.Contains(t, said, "the rules of the cluster may not matter")
}
