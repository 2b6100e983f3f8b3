//go:build flux

package gitops

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// encrypted returns a manifest as sops encrypts it for a new age key, and the key.
func encrypted(t *testing.T, manifest string) (text, key string) {
	t.Helper()
	tools, err := tool("LANDWAITER_FLUX_TOOLS")
	require.NoError(t, err)
	secret, err := exec.CommandContext(within(t), filepath.Join(tools, "age-keygen")).Output()
	require.NoError(t, err)
	recipient := regexp.MustCompile(`age1[0-9a-z]+`).FindString(string(secret))
	file := filepath.Join(t.TempDir(), "secret.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	var stdout, stderr bytes.Buffer
	sops := exec.CommandContext(within(t), filepath.Join(tools, "sops"), "--encrypt", "--age", recipient, "--encrypted-regex", "^(data|stringData)$", file)
	sops.Stdout, sops.Stderr = &stdout, &stderr
	require.NoError(t, sops.Run(), stderr.String())
	require.NotContains(t, stdout.String(), "hunter2")
	return stdout.String(), string(secret)
}

func TestAnEncryptedSecretIsDecryptedAndWhatTheRepositoryDropsIsDeleted(t *testing.T) {
	r := controllers(t)
	text, key := encrypted(t, "apiVersion: v1\nkind: Secret\nmetadata: {namespace: fig-web, name: login}\nstringData: {password: hunter2}\n")
	fig := r.team(t, "fig", "--namespace", "fig-web")
	apps := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {namespace: fig, name: apps}\n" +
		"spec: {interval: 10m, retryInterval: 1s, prune: true, serviceAccountName: fig, path: ./apps, sourceRef: {kind: GitRepository, name: fig}, decryption: {provider: sops, secretRef: {name: sops-age}}}\n"
	files := map[string]string{"apps.yaml": apps, "apps/login.yaml": text, "apps/other.yaml": configMap("fig-web", "other")}

	// Without the key nothing is applied, the other objects neither.
	fig.push(t, metav1.ConditionTrue, files)
	require.Contains(t, refused(t, flux.Kustomization(), "fig", "apps", "sops-age"), "not found")
	require.Nil(t, get(t, "v1", "Secret", "fig-web", "login"))
	require.Nil(t, get(t, "v1", "ConfigMap", "fig-web", "other"))

	secret := of("{apiVersion: v1, kind: Secret, metadata: {namespace: fig, name: sops-age}}")
	secret.Object["stringData"] = map[string]any{"age.agekey": key}
	apply(t, secret)
	_, err := flux.Await(within(t), w.Cluster, flux.Kustomization(), "fig", "apps", "", metav1.ConditionTrue)
	require.NoError(t, err)
	require.Equal(t, "aHVudGVyMg==", field(get(t, "v1", "Secret", "fig-web", "login"), "data", "password"))
	require.NotNil(t, get(t, "v1", "ConfigMap", "fig-web", "other"))

	delete(files, "apps/login.yaml")
	fig.push(t, metav1.ConditionTrue, files)
	gone(t, "v1", "Secret", "fig-web", "login")
	require.NotNil(t, get(t, "v1", "ConfigMap", "fig-web", "other"))
}

// Flux deletes what it has applied while the account still may. What is in a namespace that
// the platform keeps would stay forever otherwise.
func TestDeletingATenantLetsFluxFinishBeforeItsAccountGoes(t *testing.T) {
	r := controllers(t)
	apply(t, of("{apiVersion: v1, kind: Namespace, metadata: {name: grape-old}}"), of("{apiVersion: v1, kind: Namespace, metadata: {name: guava-old}}"))
	for name, args := range map[string][]string{"grape": {"--delete-namespaces"}, "guava": nil} {
		team := r.team(t, name, "--namespace", name+"-web", "--namespace", name+"-old", "--adopt")
		team.push(t, metav1.ConditionTrue, map[string]string{"a.yaml": configMap(name+"-web", "app"), "b.yaml": configMap(name+"-old", "app")})
		must(t, append([]string{"tenant", "delete", name, "--yes"}, args...)...)
		require.Nil(t, get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, name))
		require.Nil(t, get(t, "landwaiter.dev/v1alpha1", "Tenant", "", name))
	}
	gone(t, "v1", "Namespace", "", "grape-web")
	require.NotNil(t, get(t, "v1", "Namespace", "", "grape-old"))
	require.Nil(t, get(t, "v1", "ConfigMap", "grape-old", "app"), "Flux pruned it as the team's account")
	require.NotNil(t, get(t, "v1", "ConfigMap", "guava-old", "app"), "workloads stay")
	require.NotNil(t, get(t, "v1", "ConfigMap", "guava-web", "app"), "workloads stay")
	require.Nil(t, get(t, "v1", "ServiceAccount", "guava", "guava"))
}
