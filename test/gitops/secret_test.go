//go:build nightly

package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// encrypted returns a manifest as sops encrypts it for a new age key, and the key.
func encrypted(t *testing.T, manifest string) (text, key string) {
	t.Helper()
	secret := suite.Program{Path: suite.MustTool(t, suite.FluxTools, "age-keygen")}.Must(t)
	recipient := regexp.MustCompile(`age1[0-9a-z]+`).FindString(secret)
	file := filepath.Join(t.TempDir(), "secret.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	text = suite.Program{Path: suite.MustTool(t, suite.FluxTools, "sops")}.Must(t, "--encrypt", "--age", recipient, "--encrypted-regex",
		"^(data|stringData)$", file)
	require.NotContains(t, text, "hunter2")
	return text, secret
}

func TestAnEncryptedSecretIsDecryptedAndWhatTheRepositoryDropsIsDeleted(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	name := fresh("fig")
	web := name + "-web"
	text, key := encrypted(t, "apiVersion: v1\nkind: Secret\nmetadata: {namespace: "+web+", name: login}\nstringData: {password: hunter2}\n")
	fig := r.team(t, name, "--set", "namespaces="+web)
	apps := fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {namespace: %s, name: apps}\n"+
		"spec: {interval: 10m, retryInterval: 1s, prune: true, serviceAccountName: %[1]s, path: ./apps, sourceRef: {kind: GitRepository, name: %[1]s}, decryption: "+
		"{provider: sops, secretRef: {name: sops-age}}}\n", name)
	files := map[string]string{"apps.yaml": apps, "apps/login.yaml": text, "apps/other.yaml": configMap(web, "other")}

	// Without the key nothing is applied, the other objects neither.
	fig.push(t, metav1.ConditionTrue, files)
	require.Contains(t, r.refused(t, flux.Kustomization(), name, "apps", "sops-age"), "not found")
	require.Nil(t, r.get(t, "v1", "Secret", web, "login"))
	require.Nil(t, r.get(t, "v1", "ConfigMap", web, "other"))

	secret := suite.Object("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: sops-age}}", name)
	secret.Object["stringData"] = map[string]any{"age.agekey": key}
	r.apply(t, secret)
	r.applied(t, name, "apps", "")
	login := r.get(t, "v1", "Secret", web, "login")
	require.NotNil(t, login)
	require.Equal(t, map[string]any{"password": "aHVudGVyMg=="}, login.Object["data"])
	require.NotNil(t, r.get(t, "v1", "ConfigMap", web, "other"))

	delete(files, "apps/login.yaml")
	fig.push(t, metav1.ConditionTrue, files)
	r.gone(t, "v1", "Secret", web, "login")
	require.NotNil(t, r.get(t, "v1", "ConfigMap", web, "other"))
}

// Flux deletes what it has applied while the account still may. What is in a namespace that
// the platform keeps would stay forever otherwise.
func TestDeletingATenantLetsFluxFinishBeforeItsAccountGoes(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	grape, guava := fresh("grape"), fresh("guava")
	for name, args := range map[string][]string{grape: {"--delete-namespaces"}, guava: nil} {
		r.apply(t, suite.Namespace(name+"-old"))
		team := r.team(t, name, "--set", "namespaces="+name+"-web", "--set", "namespaces="+name+"-old", "--set", "adopt=true")
		team.push(t, metav1.ConditionTrue, map[string]string{"a.yaml": configMap(name+"-web", "app"), "b.yaml": configMap(name+"-old", "app")})
		r.program.Must(t, append([]string{"tenant", "delete", name, "--yes"}, args...)...)
		require.Nil(t, r.get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, name))
		require.Nil(t, r.get(t, "landwaiter.dev/v1beta1", "Tenant", "", name))
	}
	r.gone(t, "v1", "Namespace", "", grape+"-web")
	require.NotNil(t, r.get(t, "v1", "Namespace", "", grape+"-old"))
	require.Nil(t, r.get(t, "v1", "ConfigMap", grape+"-old", "app"), "Flux pruned it as the team's account")
	require.NotNil(t, r.get(t, "v1", "ConfigMap", guava+"-old", "app"), "workloads stay")
	require.NotNil(t, r.get(t, "v1", "ConfigMap", guava+"-web", "app"), "workloads stay")
	require.Nil(t, r.get(t, "v1", "ServiceAccount", guava, guava))
}
