//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// serve runs Landwaiter itself with the permissions of its account. Afterwards all Tenants are listed
// again: other tests have no Landwaiter that lists theirs.
func (w *installation) serve(t *testing.T) {
	t.Helper()
	ports, err := cluster.FreePorts(3)
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "landwaiter.kubeconfig")
	require.NoError(t, w.AccountKubeconfig(suite.Within(t), suite.System, "landwaiter", kubeconfig))
	process, err := cluster.StartProcess(w.LogDir(),
		cluster.Command{Name: "serve", Path: suite.MustTool(t, suite.LandwaiterServer), Env: []string{"KUBECONFIG=" + kubeconfig}, Args: []string{"serve",
			"--own-namespace=" + suite.System, "--tls-secret=landwaiter-tls", "--rotate-certificates", "--insecure-no-client-auth",
			"--cluster-role=operated-tenants=landwaiter-operated-tenants",
			fmt.Sprintf("--address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--health-address=127.0.0.1:%d", ports[1]),
			fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[2])}})
	require.NoError(t, err)
	t.Cleanup(func() {
		process.Terminate(suite.Patience)
		require.NoError(t, w.listAll(suite.Within(t)))
	})
}

// listed are the names in the role.
func (w *installation) listed(ctx context.Context) ([]string, error) {
	var role rbacv1.ClusterRole
	if err := w.Client.Get(ctx, client.ObjectKey{Name: "landwaiter-operated-tenants"}, &role); err != nil {
		return nil, err
	}
	var names []string
	for _, rule := range role.Rules {
		names = append(names, rule.ResourceNames...)
	}
	return names, nil
}

// Anyone who has the operator's account cannot say that there is a Tenant: another account
// does.
func TestTheOperatorWorksForTenantsThatLandwaiterLists(t *testing.T) {
	w := installed(t)
	w.gone(t, "listed")
	w.vacant(t, "listed")
	t.Cleanup(func() { require.NoError(t, w.listAll(suite.Within(t))) })
	require.NoError(t, w.list(suite.Within(t), ""))
	w.operate(t)
	w.tenant(t, "metadata: {name: listed}\nspec: {homeNamespace: listed, access: {admins: [{kind: Group, name: a}]}}")
	require.Contains(t, w.provisioned(t, "listed", metav1.ConditionFalse, "Unfinished"), "waits until Landwaiter has listed the Tenant")
	require.False(t, w.exists(t, "listed"))

	w.serve(t)
	w.provisioned(t, "listed", metav1.ConditionTrue, "Provisioned")
	require.Contains(t, w.objectsOf(t, "listed"), "RoleBinding listed/listed-admins")
	names, err := w.listed(suite.Within(t))
	require.NoError(t, err)
	require.Contains(t, names, "listed")

	account, err := w.NewClient(w.As("system:serviceaccount:" + suite.System + ":landwaiter-operator"))
	require.NoError(t, err)
	ghost := func(tenant string) *corev1.Namespace {
		return &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "ghost", Labels: map[string]string{v1beta1.LabelTenant: tenant, "pod-security.kubernetes.io/enforce": "restricted"}}}
	}
	require.ErrorContains(t, account.Create(suite.Within(t), ghost("no-such-team"), client.DryRunAll), "does not list Tenant no-such-team")

	// The list ends with the Tenant.
	w.program.Must(t, "tenant", "delete", "listed", "--yes")
	suite.Eventually(t, func(ctx context.Context) error {
		if err := account.Create(ctx, ghost("listed"), client.DryRunAll); err == nil {
			return errors.New("it may make a namespace of a Tenant that is gone")
		}
		return nil
	})
}

// Landwaiter's account may list Tenants for the operator guardrails, and give nobody any other permission.
func TestTheAccountThatListsTenantsGivesNoOtherRights(t *testing.T) {
	w := installed(t)
	account, err := w.NewClient(w.As("system:serviceaccount:" + suite.System + ":landwaiter"))
	require.NoError(t, err)
	for about, c := range map[string]struct {
		rule string
		says string
	}{
		"to read Secrets":   {`{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`, "attempting to grant RBAC permissions not currently held"},
		"to bind roles":     {`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["bind"]}`, "attempting to grant"},
		"to manage labels":  {`{"apiGroups":["landwaiter.dev"],"resources":["tenantlabels"],"verbs":["manage"]}`, "attempting to grant"},
		"to change Tenants": {`{"apiGroups":["landwaiter.dev"],"resources":["tenants"],"verbs":["update"]}`, "attempting to grant"},
	} {
		t.Run(about, func(t *testing.T) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "landwaiter-operated-tenants"}}
			err := account.Patch(suite.Within(t), role, client.RawPatch("application/merge-patch+json", []byte(`{"rules":[`+c.rule+`]}`)), client.DryRunAll)
			require.ErrorContains(t, err, c.says)
		})
	}
	other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}
	require.ErrorContains(t, account.Patch(suite.Within(t), other, client.RawPatch("application/merge-patch+json", []byte(`{"rules":[]}`)), client.DryRunAll),
		"cannot patch resource")
}
