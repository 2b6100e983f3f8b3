package scaffold

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const (
	goodRelease = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: apps}\nspec: {interval: 1m, serviceAccountName: " +
		"dev-team, chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: app}}}}\n"
	kubeconfig1 = "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\n"
)

func TestAFolderOfATeamWithoutAKustomizationIsBuiltAsFluxDoes(t *testing.T) {
	dir := folder(t)
	put1(t, dir, "manifests/app1.yaml", goodRelease)
	put1(t, dir, "manifests/values.yaml", "replicaCount: 1\n")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, withoutNotes(report.Findings))
	require.Equal(t, 1, report.Kustomizations)

	t.Run("one for each environment", func(t *testing.T) {
		put1(t, dir, "manifests/staging/app.yaml", strings.Replace(goodRelease, "{name: app,", "{name: other,", 1))
		put1(t, dir, "manifests/production/app.yaml", strings.Replace(goodRelease, "{name: app,", "{name: other,", 1))
		require.Empty(t, withoutNotes(found(t, dir)))
	})
	t.Run("what is wrong in it", func(t *testing.T) {
		wrong{func(t *testing.T, dir string) {
			rewrite(t, dir, "manifests/app1.yaml", "interval: 1m, ", "intervall: 1m, ")
		}, "manifests/app1.yaml", "intervall"}.isFound(t, dir)
	})
	t.Run("a kustomization above does not name it", func(t *testing.T) {
		wrong{func(t *testing.T, dir string) {
			put1(t, dir, "kustomization.yaml", kustomize("resources: []\n"))
		}, "manifests/staging/app.yaml", "no kustomization names it"}.isFound(t, dir)
	})
	t.Run("files without an object are nothing to check", func(t *testing.T) {
		dir := folder(t)
		put1(t, dir, "values.yaml", "a: b\n")
		wrong{func(*testing.T, string) {}, ".", "there is no kustomization"}.isFound(t, dir)
	})
}

func TestALoginOfAKubeconfigIsFound(t *testing.T) {
	for name, user := range map[string]string{
		"token":           "{token: s3cr3t}",
		"password":        "{username: a, password: b}",
		"client-key-data": "{client-certificate-data: YQ==, client-key-data: YQ==}",
		"refresh-token":   "{auth-provider: {name: oidc, config: {refresh-token: a}}}",
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			put1(t, dir, "clusters/a/kustomization.yaml", kustomize("resources: []\n"))
			for _, file := range []string{"clusters/a/kubeconfig.yaml", "kubeconfig"} {
				put1(t, dir, file, kubeconfig1+"users: [{name: t, user: "+user+"}]\n")
			}
			says := "it is a kubeconfig with the " + name + " of t in plain text: take it out of the tree and its history, and make a new one"
			require.Equal(t, []resource.Finding{{ID: "PlainTextKey", Severity: resource.Error, File: "clusters/a/kubeconfig.yaml", Message: says},
				{ID: "PlainTextKey", Severity: resource.Error, File: "kubeconfig", Message: says}}, found(t, dir))
		})
	}
	t.Run("in a ConfigMap", func(t *testing.T) {
		wrong{func(t *testing.T, dir string) {
			t.Helper()
			put1(t, dir, "apps/web/a.yaml", configMap("a")+"data: {kubeconfig: '{apiVersion: v1, kind: Config, users: [{name: t, user: {token: a}}]}'}\n")
		}, "apps/web/a.yaml", "it is a kubeconfig with the token of t"}.isFound(t, small(t))
	})
	t.Run("without a login, or encrypted", func(t *testing.T) {
		dir := folder(t)
		put1(t, dir, "clusters/a/kustomization.yaml", kustomize("resources: []\n"))
		put1(t, dir, "clusters/a/kubeconfig.yaml", kubeconfig1+"users: [{name: t, user: {exec: {command: a}}}, {name: u, user: {token: '"+sealedValue+"'}}]\n")
		require.Empty(t, found(t, dir))
	})
}

func TestAFolderThatNoClusterAppliesIsFoundInAllLayouts(t *testing.T) {
	sets := []string{imagesSet, "flux"}
	for name, p := range map[string]Platform{
		"flux":   {Environments: []string{"staging"}},
		"groups": {Layout: LayoutGroups, Groups: []string{"staging", "production"}, Clusters: []string{"staging/one"}},
		"arc":    {Layout: LayoutArc, Clusters: []string{"cluster1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.Constraints = sets
			dir := light(t, example{platform: &p}.write(t))
			require.Equal(t, []resource.Finding{}, found(t, dir))

			p.Constraints = []string{imagesSet}
			tree, err := NewPlatform(p)
			require.NoError(t, err)
			_, err = Write(dir, tree, WriteOptions{Force: true})
			require.NoError(t, err)
			light(t, dir)
			put1(t, dir, "infrastructure/extra/kustomization.yaml", kustomize("resources: []\n"))
			var left []string
			for _, f := range found(t, dir) {
				require.Equal(t, "NotApplied", f.ID)
				left = append(left, filepath.ToSlash(f.File))
			}
			require.Contains(t, left, "infrastructure/extra/kustomization.yaml")
			require.Contains(t, left, "infrastructure/policies/flux/kustomization.yaml")
		})
	}
}
