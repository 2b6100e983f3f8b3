//go:build e2e

package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var guarded = suite.Once(parts, start)

// kustomization is what Flux does for an object of that kind: it builds the path, sets the
// namespace, fills in variables, and applies the result as an account.
type kustomization struct {
	*world
	namespace, account, path, target string
	variables                        map[string]string
}

// reconcile applies the files as the account, and returns the first refusal.
func (k kustomization) reconcile(t *testing.T, files map[string]string) error {
	t.Helper()
	account := k.account
	if account == "" {
		account = "default" // --default-service-account=default
	}
	config := k.As(fmt.Sprintf("system:serviceaccount:%s:%s", k.namespace, account), "system:serviceaccounts", "system:serviceaccounts:"+k.namespace)
	asAccount, err := k.NewClient(config)
	require.NoError(t, err)
	objects, err := cluster.Decode([]byte(k.build(t, files)))
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	for _, dry := range []bool{true, false} { // as Flux does: nothing is applied unless everything would be
		for _, object := range objects {
			options := []client.ApplyOption{client.FieldOwner("kustomize-controller"), client.ForceOwnership}
			if dry {
				options = append(options, client.DryRunAll)
			}
			if err := asAccount.Apply(suite.Within(t), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...); err != nil {
				return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// build returns what kustomize makes of a path, with the namespace and the variables.
func (k kustomization) build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{}
	for name, text := range files {
		all[filepath.Join("tree", name)] = text
	}
	wrapper := "resources: [../tree/" + k.path + "]\n"
	if k.target != "" {
		wrapper += "namespace: " + k.target + "\n"
	}
	all["wrapper/kustomization.yaml"] = wrapper
	for name, text := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	built := suite.Program{Path: suite.MustTool(t, suite.ChartTools, "kustomize")}.Must(t, "build", filepath.Join(dir, "wrapper"))
	return regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllStringFunc(built, func(match string) string { return k.variables[match[2:len(match)-1]] })
}

func TestWithoutControllersATenantsAccountStaysInItsNamespaces(t *testing.T) {
	w := guarded(t)
	lime, kiwi := fresh("lime"), fresh("kiwi")
	w.program.Must(t, "tenant", "add", lime, "--set", "namespaces="+lime+"-web")
	w.add(t, "metadata: {name: %s}\nspec: {homeNamespace: %[1]s, namespaces: [%[1]s-web], reconciler: {}}\n", kiwi)
	files := func(namespace string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [own.yaml, other.yaml]\n", "own.yaml": configMap(kiwi+"-web", "own"),
			"other.yaml": configMap(namespace, "other")}
	}
	own := kustomization{world: w, namespace: kiwi, account: kiwi}
	for _, namespace := range []string{"default", lime, lime + "-web", "kube-system"} {
		require.ErrorContains(t, own.reconcile(t, files(namespace)),
			fmt.Sprintf(`User "system:serviceaccount:%s:%[1]s" cannot patch resource "configmaps" in API group "" in the namespace %q`, kiwi, namespace))
		require.Nil(t, w.get(t, "v1", "ConfigMap", namespace, "other"))
		require.Nil(t, w.get(t, "v1", "ConfigMap", kiwi+"-web", "own"), "all or nothing")
	}
	suite.Eventually(t, func(context.Context) error { return own.reconcile(t, files(kiwi)) }) // once bindings are known
	require.NotNil(t, w.get(t, "v1", "ConfigMap", kiwi+"-web", "own"))

	// Where nobody is named, it is the account default, which has no permissions.
	require.ErrorContains(t, kustomization{world: w, namespace: kiwi}.reconcile(t, files(kiwi)),
		fmt.Sprintf(`User "system:serviceaccount:%s:default" cannot patch resource "configmaps"`, kiwi))
}

func TestWithoutControllersTheDemoIsTheSeeds(t *testing.T) {
	w := guarded(t)
	foo, tenant := fresh("foo"), fresh("sometenant")
	w.add(t, "metadata: {name: %s}\nspec: {homeNamespace: %s, reconciler: {serviceAccount: %[2]s}}\n", tenant, foo)
	k := kustomization{world: w, namespace: foo, account: foo, path: "kustomizations/per-tenant", target: foo,
		variables: map[string]string{"SUBST_LITERAL": tenant, "PER_TENANT_SUBST": fmt.Sprintf("This tenant name is %q", tenant)}}
	suite.Eventually(t, func(context.Context) error { return k.reconcile(t, demo()) }) // once bindings are known
	w.requireSeeds(t, foo, tenant)
}

// What names another namespace is refused, with the account and without.
func TestTheDemosLastSectionIsRefused(t *testing.T) {
	w := guarded(t)
	bar := fresh("bar")
	w.program.Must(t, "tenant", "add", "--tenant-namespace", bar, "--tenant-name", fresh("othertenant"), "--set",
		"reconciler.source.url=https://git.example.com/demo")
	for _, account := range []string{bar, ""} {
		err := kustomization{world: w, namespace: bar, account: account, path: "kustomizations/wrong-namespace"}.reconcile(t, demo())
		require.ErrorContains(t, err, `cannot patch resource "configmaps" in API group "" in the namespace "default"`)
	}
	require.Nil(t, w.get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
}

// add makes a Tenant of a file.
func (w *world) add(t *testing.T, format string, args ...any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tenant.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\n"+format, args...), 0o600))
	w.program.Must(t, "tenant", "add", "-f", file)
}
