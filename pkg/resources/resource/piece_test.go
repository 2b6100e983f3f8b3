package resource_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func piece(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.LabelPiece: "true"}}, Rules: rules}
}

func rule(group, kind, verb string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{kind}, Verbs: []string{verb}}
}

func TestAPieceHasNothingOfKubernetesGatekeeperOrLandwaiter(t *testing.T) {
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"bindings":                  {rule(rbacv1.GroupName, "rolebindings", "create"), rbacv1.GroupName},
		"webhooks":                  {rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "update"), "admissionregistration.k8s.io"},
		"our kinds":                 {rule("landwaiter.dev", "truststores", "update"), "landwaiter.dev"},
		"our reports":               {rule("openreports.io", "reports", "create"), "openreports.io"},
		"constraints":               {rule("constraints.gatekeeper.sh", "verifiedimages", "delete"), "constraints.gatekeeper.sh"},
		"nodes":                     {rule("", "nodes", "get"), "core"},
		"quotas":                    {rule("", "resourcequotas", "update"), "core"},
		"deployments":               {rule("apps", "deployments", "update"), "apps"},
		"every group":               {rule("*", "things", "get"), "*"},
		"every group below one":     {rule("*.example.com", "things", "get"), "*.example.com"},
		"every kind":                {rule("example.com", "*", "get"), "*"},
		"every subresource":         {rule("example.com", "things/*", "get"), "things/*"},
		"every verb":                {rule("example.com", "things", "*"), "*"},
		"impersonation":             {rule("example.com", "things", "impersonate"), "impersonate"},
		"binding":                   {rule("example.com", "things", "bind"), "bind"},
		"escalation":                {rule("example.com", "things", "escalate"), "escalate"},
		"a store of the cluster":    {rule("external-secrets.io", "clustersecretstores", "create"), "clustersecretstores"},
		"secrets of the cluster":    {rule("external-secrets.io", "clusterexternalsecrets", "create"), "clusterexternalsecrets"},
		"pushes of the cluster":     {rule("external-secrets.io", "clusterpushsecrets", "create"), "clusterpushsecrets"},
		"an issuer of the cluster":  {rule("cert-manager.io", "clusterissuers/status", "update"), "clusterissuers/status"},
		"what is no object":         {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, "nonResourceURLs"},
		"requests for certificates": {rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"), "certificates.k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []string{c.want}, resource.PieceExcess(piece("mine", rule("example.com", "things", "create"), c.rule), "landwaiter"))
			require.Empty(t, resource.PieceExcess(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Rules: []rbacv1.PolicyRule{c.rule}}, "landwaiter"),
				"it is no piece")
			require.Empty(t, resource.PieceExcess(piece("landwaiter-reconciler-base", c.rule), "landwaiter"), "it is the chart's own")
			require.NotEmpty(t, resource.PieceExcess(piece("other-reconciler-base", c.rule), "landwaiter"))
		})
	}
	aggregated := piece("mine")
	aggregated.AggregationRule = &rbacv1.AggregationRule{}
	require.Equal(t, []string{"aggregationRule"}, resource.PieceExcess(aggregated, "landwaiter"))
}

func TestTheReadyMadePiecesMayBePieces(t *testing.T) {
	names, err := fs.Glob(config.Files, "pieces/*.yaml")
	require.NoError(t, err)
	require.Len(t, names, 7)
	for _, name := range names {
		text, err := config.Files.ReadFile(name)
		require.NoError(t, err)
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.UnmarshalStrict(text, &role), name)
		require.Equal(t, "pieces/"+role.Name[len("landwaiter-reconciler-"):]+".yaml", name)
		require.Equal(t, map[string]string{v1beta1.LabelPiece: "true"}, role.Labels, name)
		require.Len(t, role.Rules, 1, name)
		require.Empty(t, resource.PieceExcess(&role, "landwaiter"), name)
	}
}
