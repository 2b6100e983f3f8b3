package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

func TestADeletionSaysWhoseRulesEndAndWhatStays(t *testing.T) {
	t.Parallel()
	const ends = "The rules of home namespace delta would no longer apply in "
	const preview = "To see which verdicts change: landwaiter preview --delete tenant/delta -A\n"
	rules := operator.LeftOver{Rules: []policy.ObjectRef{{Kind: "Verifier", Namespace: "delta", Name: "a"}, {Kind: "Verifier", Namespace: "delta", Name: "b"},
		{Kind: "TrustStore", Namespace: "delta", Name: "keys"}}}
	released := func(namespace string) operator.Outcome {
		return operator.Outcome{Object: policy.ObjectRef{Kind: "NetworkPolicy", Namespace: namespace, Name: "allow-same-tenant"}, Result: operator.Released}
	}
	for name, c := range map[string]struct {
		level    v1beta1.PolicyLevel
		listed   []string
		deletion operator.Deletion
		left     operator.LeftOver
		real     bool
		want     string
	}{
		"namespaces stay": {deletion: operator.Deletion{Kept: []string{"delta", "delta-web"}, Adopted: []string{"checkout"}},
			want: ends + "checkout, delta-web: the cluster's rules may admit images there that are denied now, or deny others.\n" + preview},
		"a listed one is not adopted yet": {listed: []string{"later"}, deletion: operator.Deletion{Kept: []string{"delta"}},
			want: ends + "later: the cluster's rules may admit images there that are denied now, or deny others.\n" + preview},
		"only the home namespace stays":        {deletion: operator.Deletion{Kept: []string{"delta"}}},
		"nothing stays":                        {listed: []string{"delta-web"}, deletion: operator.Deletion{Deleted: []string{"delta", "delta-web"}}},
		"namespaces get their own rules back":  {level: v1beta1.PolicyLevelCluster, deletion: operator.Deletion{Kept: []string{"delta-web"}}, want: preview},
		"a home namespace gets its rules back": {level: v1beta1.PolicyLevelCluster, deletion: operator.Deletion{Adopted: []string{"delta"}}, want: preview},
		"a binding stays": {left: operator.LeftOver{Bindings: []string{"delta-cluster-reader"}},
			want: "1 ClusterRoleBinding of the team's people would be kept. To delete: kubectl delete clusterrolebinding delta-cluster-reader\n"},
		"a delegation stays": {left: operator.LeftOver{Names: []policy.ObjectRef{{Kind: "ClusterException", Name: "may"}}},
			want: "Cluster resources that name Tenant delta would be kept, and apply to a later Tenant of that name: ClusterException may. Remove the " +
				"name from them.\n"},
		"rules stay": {deletion: operator.Deletion{Kept: []string{"delta"}}, left: rules,
			want: "These would stay in force in the home namespace: Verifier delta/a, Verifier delta/b, TrustStore delta/keys. " +
				"To delete: kubectl delete --namespace delta --all verifiers.landwaiter.dev,truststores.landwaiter.dev\n"},
		"rules go with their namespace": {deletion: operator.Deletion{Deleted: []string{"delta"}}, left: rules},
		"network traffic ends": {deletion: operator.Deletion{Kept: []string{"delta"},
			Report: operator.Report{Outcomes: []operator.Outcome{released("delta-web"), released("checkout")}}},
			want: "Network traffic between checkout, delta-web would end, because network policy allow-same-tenant selects a label that the Tenant's namespaces lose. " +
				"To keep it, first create a NetworkPolicy that selects the namespaces by the label kubernetes.io/metadata.name.\n"},
		"network traffic has ended": {real: true,
			deletion: operator.Deletion{Kept: []string{"delta"}, Report: operator.Report{Outcomes: []operator.Outcome{released("delta-web"), released("checkout")}}},
			want: "Network traffic between checkout, delta-web ends, because network policy allow-same-tenant selects a label that the Tenant's namespaces lose. " +
				"To allow it again, create a NetworkPolicy that selects the namespaces by the label kubernetes.io/metadata.name.\n"},
		"one namespace keeps " +
			"its traffic": {deletion: operator.Deletion{Kept: []string{"delta"}, Report: operator.Report{Outcomes: []operator.Outcome{released("delta")}}}},
		"it is deleted, and previews are too late": {real: true, deletion: operator.Deletion{Kept: []string{"delta-web"}},
			want: "The rules of home namespace delta no longer apply in delta-web: the cluster's rules may admit images there that are denied now, or deny others.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "delta"}, Spec: v1beta1.TenantSpec{HomeNamespace: "delta", Namespaces: c.listed}}
			tenant.Spec.Verification.PolicyLevel = c.level
			var out bytes.Buffer
			require.NoError(t, show(&out, printableDeletion(tenant, &c.deletion, c.left, !c.real)))
			_, after, _ := bytes.Cut(out.Bytes(), []byte("\n"))
			require.Equal(t, c.want, string(after))
			printed := printableDeletion(tenant, &c.deletion, c.left, !c.real)
			require.Equal(t, len(printed.Rules) > 0, printed.DeleteRules != "", "no command without rules to delete")
		})
	}
}
