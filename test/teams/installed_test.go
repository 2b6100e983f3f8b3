//go:build e2e || nightly

// Package teams onboards teams as a cluster admin does, with the program and with the
// operator, and attacks them, against real API servers and kube-controller-managers.
// Gatekeeper is not there: nothing of this may depend on it.
package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	engine "github.com/landwaiter/landwaiter/pkg/tenancy/operator"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("teams")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// installation is a cluster with the chart, guardrails and the permissions of the operator
// included. Its Deployments run nothing: there are no nodes. Each test has teams of its own.
type installation struct {
	*cluster.Cluster
	// program is called as a cluster admin.
	program  suite.Program
	rendered []*unstructured.Unstructured
}

var installed = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*installation, error) {
	w := &installation{}
	var err error
	if w.program.Path, err = suite.Tool(suite.Landwaiter); err != nil {
		return nil, err
	}
	if w.Cluster, err = e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true}); err != nil {
		return nil, err
	}
	w.program.Kubeconfig = w.Kubeconfig()
	if w.rendered, err = suite.Chart(ctx, "landwaiter", "--set",
		"guardrails.enabled=true,operator.enabled=true,mutation.enabled=true,operator.mutation=true,operator.clusterRoles={team-deployer},clusterResourceNamespace="+
			clusterKeys); err != nil {
		return nil, err
	}
	kinds, err := foreignKinds()
	if err != nil {
		return nil, err
	}
	// Landwaiter, which does not run here, makes it: the operator copies its caBundle.
	verify := suite.Object("{apiVersion: externaldata.gatekeeper.sh/v1beta1, kind: Provider, metadata: {name: landwaiter-verify}, spec: {url: " +
		"'https://landwaiter.landwaiter-system.svc:443/v1/verify', timeout: 3, caBundle: eA==}}")
	if err := w.Apply(ctx, slices.Concat(kinds, w.rendered, []*unstructured.Unstructured{verify})...); err != nil {
		return nil, err
	}
	if err := w.listAll(ctx); err != nil {
		return nil, err
	}
	if err := cluster.Until(ctx, w.confined); err != nil { // policies take effect a moment after they are made
		return nil, err
	}
	// Kubernetes' quota controller looks for new kinds every 30 seconds.
	probe := suite.Object("{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: default, name: probe}, spec: {hard: {count/stores.landwaiter.dev: 64}}}")
	if err := w.Apply(ctx, probe); err != nil {
		return nil, err
	}
	if err := cluster.Until(ctx, quotasCounted(w.Cluster)); err != nil {
		return nil, err
	}
	return w, w.Client.Delete(ctx, probe)
})

// quotasCounted returns what is nil once Kubernetes has counted all ResourceQuotas: until then the
// API server refuses resources that they limit.
func quotasCounted(c *cluster.Cluster) func(context.Context) error {
	return func(ctx context.Context) error {
		var quotas corev1.ResourceQuotaList
		if err := c.Client.List(ctx, &quotas); err != nil {
			return err
		}
		for _, quota := range quotas.Items {
			for name := range quota.Spec.Hard {
				if _, ok := quota.Status.Used[name]; !ok {
					return fmt.Errorf("%s is not counted in namespace %s", name, quota.Namespace)
				}
			}
		}
		return nil
	}
}

// clusterKeys is the namespace of what cluster resources reference.
const clusterKeys = "cluster-keys"

// foreignKinds are those of Flux and Gatekeeper that Tenants have, and their namespaces.
func foreignKinds() ([]*unstructured.Unstructured, error) {
	kinds, err := cluster.DecodeFile("testdata/flux.yaml")
	if err != nil {
		return nil, err
	}
	release, err := suite.Tool(suite.ClusterTools, "gatekeeper.yaml")
	if err != nil {
		return nil, err
	}
	gatekeepers, err := cluster.DecodeFile(release)
	for _, o := range gatekeepers {
		if o.GetKind() == "CustomResourceDefinition" &&
			slices.Contains([]string{"providers.externaldata.gatekeeper.sh", "assign.mutations.gatekeeper.sh"}, o.GetName()) {
			kinds = append(kinds, o)
		}
	}
	return append(kinds, suite.Namespace(suite.System), suite.Namespace(cluster.GatekeeperNamespace), suite.Namespace(clusterKeys)), err
}

// listAll lists all Tenants for the operator guardrails, those to come too: Landwaiter, which
// lists them by name, does not run in most tests.
func (w *installation) listAll(ctx context.Context) error {
	return w.list(ctx, "{apiGroups: [landwaiter.dev], resources: [tenants], verbs: [operate, end, purge]}")
}

func (w *installation) list(ctx context.Context, rule string) error {
	return w.Apply(ctx,
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: landwaiter-operated-tenants}, rules: [%s]}", rule))
}

// operatorGuardrail limits the operator to namespaces of Tenants.
const operatorGuardrail = "landwaiter-operator-guardrail"

var errNoGuardrail = errors.New("the operator guardrails are not in force")

// confined returns nil if the operator's account may not make anybody admin in kube-system.
func (w *installation) confined(ctx context.Context) error {
	account, err := w.NewClient(w.As("system:serviceaccount:" + suite.System + ":landwaiter-operator"))
	if err != nil {
		return err
	}
	err = account.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "probe"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}}, client.DryRunAll)
	switch {
	case err == nil:
		return errNoGuardrail
	case !strings.Contains(err.Error(), operatorGuardrail):
		return fmt.Errorf("ask for what the operator guardrail refuses: %w", err)
	}
	return nil
}

// added is what tenant add -o json prints of one Tenant.
type added struct {
	Tenant, HomeNamespace                          string
	Namespaces                                     []string
	Created, Changed, Unchanged, Removed, Released int
}

// add runs tenant add.
func (w *installation) add(t *testing.T, args ...string) added {
	t.Helper()
	var printed struct{ Tenants []added }
	out := w.program.Must(t, append([]string{"tenant", "add", "-o", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &printed), out)
	require.Len(t, printed.Tenants, 1)
	return printed.Tenants[0]
}

// typical are arguments of tenant add for the team of most tests.
func typical(name string) []string {
	return []string{name, "--set", "namespacePrefix=" + name + "-", "--set", "namespaces=" + name + "-web", "--set", "access.admins=" + name + "-admins", "--set",
		"access.developers=" + name + "-devs",
		"--set", "reconciler.source.url=https://github.com/example/" + name, "--set", "isolation.quota.pods=50", "--set", "reconciler.variables.REGION=eu"}
}

// gone deletes teams and the namespaces that were made for them at the end of a test, and
// waits for those of an earlier run at its begin: namespaces take five seconds to end.
func (w *installation) gone(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		suite.Eventually(t, func(ctx context.Context) error {
			var ending corev1.NamespaceList
			if err := w.Client.List(ctx, &ending, client.MatchingLabels{v1beta1.LabelTenant: name}); err != nil || len(ending.Items) > 0 {
				return fmt.Errorf("%d namespaces of Tenant %s are there: %w", len(ending.Items), name, err)
			}
			return nil
		})
		t.Cleanup(func() { suite.Eventually(t, func(ctx context.Context) error { return w.endTeam(ctx, name) }) })
	}
}

// endTeam deletes a team. It returns an error until that is done.
func (w *installation) endTeam(ctx context.Context, name string) error {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Client.Delete(ctx, tenant); err == nil {
		// The operator that has set its finalizer may have ended with the test.
		err = w.Client.Patch(ctx, tenant, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		return errors.Join(client.IgnoreNotFound(err), errors.New("the Tenant is still there"))
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	tenant.Spec.NamespaceReclaimPolicy = v1beta1.NamespaceReclaimPolicyDeleteCreated
	deletion, err := engine.New(w.Client, engine.Options{ClusterBindings: true}).Delete(ctx, tenant)
	if err == nil && len(deletion.Pending)+len(deletion.Problems) > 0 {
		err = fmt.Errorf("left are %v, %v", deletion.Pending, deletion.Problems)
	}
	return err
}

// vacant deletes namespaces at the end of a test, and waits for those of an earlier run at
// its begin.
func (w *installation) vacant(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		suite.Eventually(t, func(context.Context) error {
			if w.exists(t, name) {
				return fmt.Errorf("namespace %s is ending", name)
			}
			return nil
		})
		t.Cleanup(func() {
			require.NoError(t, client.IgnoreNotFound(w.Client.Delete(suite.Within(t), suite.Namespace(name))))
		})
	}
}

// objectsOf returns what carries a Tenant's label, by kind, namespace and name.
func (w *installation) objectsOf(t *testing.T, tenant string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "ResourceQuota"}, {Version: "v1", Kind: "Namespace"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: rbacv1.GroupName, Version: "v1", Kind: "RoleBinding"}, {Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}, {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		require.NoError(t, w.Client.List(suite.Within(t), list, client.MatchingLabels{v1beta1.LabelTenant: tenant}))
		for i := range list.Items {
			object := &list.Items[i]
			found[strings.TrimPrefix(kind.Kind+" "+object.GetNamespace()+"/", "/")+object.GetName()] = object
		}
	}
	return found
}

// resourceVersions are those of objects.
func resourceVersions(objects map[string]*unstructured.Unstructured) map[string]string {
	made := map[string]string{}
	for name, object := range objects {
		made[name] = object.GetResourceVersion()
	}
	return made
}

// exists reports whether a namespace exists.
func (w *installation) exists(t *testing.T, namespace string) bool {
	t.Helper()
	err := w.Client.Get(suite.Within(t), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// makeNamespace makes a namespace as somebody does who knows of no Tenant.
func (w *installation) makeNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	w.vacant(t, name)
	require.NoError(t, w.Client.Create(suite.Within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
}

// provisioned waits for the condition that the operator writes, and returns its message.
func (w *installation) provisioned(t *testing.T, tenant string, status metav1.ConditionStatus, reason string) string {
	t.Helper()
	var condition *metav1.Condition
	suite.Eventually(t, func(ctx context.Context) error {
		live := &v1beta1.Tenant{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: tenant}, live); err != nil {
			return err
		}
		condition = meta.FindStatusCondition(live.Status.Conditions, v1beta1.ConditionProvisioned)
		if condition == nil || condition.Status != status || condition.Reason != reason || condition.ObservedGeneration != live.Generation {
			return fmt.Errorf("Provisioned is %+v", condition)
		}
		return nil
	})
	return condition.Message
}

// follows waits until the objects of a team are as check says, and logs how long it took.
func (w *installation) follows(t *testing.T, tenant string, check func(map[string]*unstructured.Unstructured) bool) {
	t.Helper()
	began := time.Now()
	suite.Eventually(t, func(context.Context) error {
		if objects := w.objectsOf(t, tenant); !check(objects) {
			return fmt.Errorf("there are %v", slices.Sorted(maps.Keys(objects)))
		}
		return nil
	})
	t.Logf("after %s", time.Since(began).Round(time.Millisecond))
}

// patch merges a patch into an object.
func (w *installation) patch(t *testing.T, object client.Object, text string) {
	t.Helper()
	require.NoError(t, w.Client.Patch(suite.Within(t), object, client.RawPatch("application/merge-patch+json", []byte(text))))
}

// patchTenant merges a patch into a Tenant.
func (w *installation) patchTenant(t *testing.T, name, text string) {
	t.Helper()
	w.patch(t, &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}, text)
}

// chart is the folder of the chart.
var chart = filepath.Join(suite.Root, "charts/landwaiter")
