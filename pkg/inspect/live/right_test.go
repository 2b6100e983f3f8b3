package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestAMissingRightNamesTheRoleThatGrantsIt(t *testing.T) {
	ours := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "landwaiter.dev", Resource: resource}
	}
	for _, c := range []struct {
		right Right
		want  string
	}{
		{Right{Verb: "list", Resource: ours("clusterverifiers")}, "you cannot list clusterverifiers.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-cluster-reader"},
		{Right{Verb: "list", Resource: ours("tenants")}, "you cannot list tenants.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-tenant-reader"},
		{Right{Verb: "list", Resource: ours("verifiers"), Namespace: "team-a"}, "you cannot list verifiers.landwaiter.dev in namespace team-a; ask an admin of the namespace to bind ClusterRole landwaiter-reader there"},
		{Right{Verb: "list", Resource: schema.GroupResource{Resource: "pods"}, Namespace: "team-a"}, "you cannot list pods in namespace team-a; ask an admin of the namespace to bind ClusterRole landwaiter-reader there"},
		{Right{Verb: "list", Resource: ours("verifiers")}, "you cannot list verifiers.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-reader"},
		{Right{Verb: "list", Resource: schema.GroupResource{Group: "openreports.io", Resource: "reports"}, Namespace: "team-a"}, "you cannot list reports.openreports.io in namespace team-a; ask a cluster admin to bind ClusterRole landwaiter-report-reader"},
		{Right{Verb: "get", Resource: schema.GroupResource{Resource: "namespaces"}, Name: "team-a"}, "you cannot get namespaces/team-a; ask a cluster admin to bind ClusterRole landwaiter-reader"},
		{
			Right{Verb: "get", Resource: schema.GroupResource{Resource: "secrets"}, Namespace: "team-a", Name: "key"},
			"you cannot get secrets/key in namespace team-a; to grant it for this one: kubectl create role NAME -n team-a --verb=get --resource=secrets --resource-name=key, and bind the role to yourself",
		},
	} {
		require.Equal(t, c.want, c.right.String())
	}
}

func TestAllThatIsLackingIsNamedAtOnce(t *testing.T) {
	ours := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "landwaiter.dev", Resource: resource}
	}
	s := State{Rights: []Right{{Verb: "list", Resource: ours("clusterverifiers")}, {Verb: "list", Resource: ours("clusterstores")}, {Verb: "list", Resource: ours("tenants")}},
		unsure: map[verify.Namespace]string{"b": "you cannot list deployments.apps", "a": "you cannot list deployments.apps"}}
	require.Equal(t, []string{
		"you cannot list clusterverifiers, clusterstores; ask a cluster admin to bind ClusterRole landwaiter-cluster-reader",
		"you cannot list tenants.landwaiter.dev; ask a cluster admin to bind ClusterRole landwaiter-tenant-reader",
		"you cannot list deployments.apps",
	}, s.Lacks())
	require.Empty(t, State{}.Lacks())
}
