//go:build e2e

package gitops

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// kustomization is what Flux does for an object of that kind: it builds the path, sets the
// namespace, fills in variables, and applies the result as an account.
type kustomization struct {
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
	config := w.As(fmt.Sprintf("system:serviceaccount:%s:%s", k.namespace, account), "system:serviceaccounts", "system:serviceaccounts:"+k.namespace)
	asAccount, err := w.NewClient(config)
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
			if err := asAccount.Apply(within(t), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...); err != nil {
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
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(within(t), filepath.Join(w.charts, "kustomize"), "build", filepath.Join(dir, "wrapper"))
	command.Stdout, command.Stderr = &stdout, &stderr
	require.NoError(t, command.Run(), stderr.String())
	return regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllStringFunc(stdout.String(), func(match string) string { return k.variables[match[2:len(match)-1]] })
}

func TestWithoutControllersATenantsAccountStaysInItsNamespaces(t *testing.T) {
	must(t, "tenant", "add", "lime", "--namespace", "lime-web")
	file := filepath.Join(t.TempDir(), "kiwi.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: landwaiter.dev/v1alpha1\nkind: Tenant\nmetadata: {name: kiwi}\nspec: {home: kiwi, namespaces: [kiwi-web], reconciler: {}}\n"), 0o600))
	must(t, "tenant", "add", "-f", file)
	files := func(namespace string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [own.yaml, other.yaml]\n", "own.yaml": configMap("kiwi-web", "own"), "other.yaml": configMap(namespace, "other")}
	}
	own := kustomization{namespace: "kiwi", account: "kiwi"}
	for _, namespace := range []string{"default", "lime", "lime-web", "kube-system"} {
		require.ErrorContains(t, own.reconcile(t, files(namespace)), `User "system:serviceaccount:kiwi:kiwi" cannot patch resource "configmaps" in API group "" in the namespace "`+namespace+`"`)
		require.Nil(t, get(t, "v1", "ConfigMap", namespace, "other"))
		require.Nil(t, get(t, "v1", "ConfigMap", "kiwi-web", "own"), "all or nothing")
	}
	require.NoError(t, cluster.Until(within(t), func(context.Context) error { return own.reconcile(t, files("kiwi")) })) // once bindings are known
	require.NotNil(t, get(t, "v1", "ConfigMap", "kiwi-web", "own"))

	// Where nobody is named, it is the account default, which has no rights.
	require.ErrorContains(t, kustomization{namespace: "kiwi"}.reconcile(t, files("kiwi")), `User "system:serviceaccount:kiwi:default" cannot patch resource "configmaps"`)
}

func TestWithoutControllersTheDemoIsTheSeeds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tenant.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: landwaiter.dev/v1alpha1\nkind: Tenant\nmetadata: {name: sometenant}\nspec: {home: foo, reconciler: {serviceAccount: foo}}\n"), 0o600))
	must(t, "tenant", "add", "-f", file)
	k := kustomization{namespace: "foo", account: "foo", path: "kustomizations/per-tenant", target: "foo",
		variables: map[string]string{"SUBST_LITERAL": "sometenant", "PER_TENANT_SUBST": `This tenant name is "sometenant"`}}
	require.NoError(t, cluster.Until(within(t), func(context.Context) error { return k.reconcile(t, demo()) })) // once bindings are known
	requireSeeds(t, "foo", "sometenant")

}

// What names another namespace is refused, with the account and without.
func TestTheDemosLastSectionIsRefused(t *testing.T) {
	must(t, "tenant", "add", "--tenant-namespace", "bar", "--tenant-name", "othertenant", "--git-url", "https://git.example.com/demo")
	for _, account := range []string{"bar", ""} {
		err := kustomization{namespace: "bar", account: account, path: "kustomizations/wrong-namespace"}.reconcile(t, demo())
		require.ErrorContains(t, err, `cannot patch resource "configmaps" in API group "" in the namespace "default"`)
	}
	require.Nil(t, get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
}
