package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

func TestADeletionSaysWhoseRulesEndAndWhatStays(t *testing.T) {
	t.Parallel()
	const ends = "The rules of home namespace delta would no longer apply in "
	const preview = "To see which verdicts change: landwaiter preview --delete tenant/delta -A\n"
	for name, c := range map[string]struct {
		level    v1beta1.PolicyLevel
		listed   []string
		deletion operator.Deletion
		bindings []string
		real     bool
		want     string
	}{
		"namespaces stay":                          {deletion: operator.Deletion{Kept: []string{"delta", "delta-web"}, Adopted: []string{"checkout"}}, want: ends + "checkout, delta-web: the cluster's rules may admit images there that are denied now.\n" + preview},
		"a listed one is not adopted yet":          {listed: []string{"later"}, deletion: operator.Deletion{Kept: []string{"delta"}}, want: ends + "later: the cluster's rules may admit images there that are denied now.\n" + preview},
		"only the home namespace stays":            {deletion: operator.Deletion{Kept: []string{"delta"}}},
		"nothing stays":                            {listed: []string{"delta-web"}, deletion: operator.Deletion{Deleted: []string{"delta", "delta-web"}}},
		"namespaces get their own rules back":      {level: v1beta1.PolicyLevelCluster, deletion: operator.Deletion{Kept: []string{"delta-web"}}, want: preview},
		"a home namespace gets its rules back":     {level: v1beta1.PolicyLevelCluster, deletion: operator.Deletion{Adopted: []string{"delta"}}, want: preview},
		"a binding stays":                          {bindings: []string{"delta-cluster-reader"}, want: "1 ClusterRoleBinding of the team's people would be kept. To delete: kubectl delete clusterrolebinding delta-cluster-reader\n"},
		"it is deleted, and previews are too late": {real: true, deletion: operator.Deletion{Kept: []string{"delta-web"}}, want: "The rules of home namespace delta no longer apply in delta-web: the cluster's rules may admit images there that are denied now.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "delta"}, Spec: v1beta1.TenantSpec{HomeNamespace: "delta", Namespaces: c.listed}}
			tenant.Spec.Verification.PolicyLevel = c.level
			var out bytes.Buffer
			require.NoError(t, show(&out, printableDeletion(tenant, &c.deletion, c.bindings, !c.real)))
			_, after, _ := bytes.Cut(out.Bytes(), []byte("\n"))
			require.Equal(t, c.want, string(after))
		})
	}
}
