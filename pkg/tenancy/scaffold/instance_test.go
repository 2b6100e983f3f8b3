package scaffold

import (
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fluxInstance is as in controlplaneio-fluxcd/d1-fleet.
func fluxInstance(environment string, more object) string {
	spec := object{
		"distribution": object{"version": "2.7.x", "registry": "ghcr.io/fluxcd"},
		"cluster":      object{"multitenant": true},
		"sync":         object{"kind": "GitRepository", "url": "https://example.com/fleet.git", "ref": "refs/heads/main", "path": "clusters/" + environment},
	}
	maps.Copy(spec, more)
	return document("", object{"apiVersion": "fluxcd.controlplane.io/v1", "kind": "FluxInstance", "metadata": named(fluxNamespace, "flux"), "spec": spec})
}

// fleet is a folder whose clusters the Flux Operator installs Flux in.
func fleet(t *testing.T, more object) string {
	t.Helper()
	dir := folder(t)
	for _, environment := range []string{"staging", "production"} {
		put1(t, dir, path.Join("clusters", environment, "flux-system/flux-instance.yaml"), fluxInstance(environment, more))
		put1(t, dir, path.Join("clusters", environment, "apps.yaml"), document("", step{"apps", "./apps/" + environment, nil, nil}.object()))
		put1(t, dir, path.Join("apps", environment, "settings.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
	}
	return dir
}

func TestAFluxInstanceBeginsACluster(t *testing.T) {
	for name, more := range map[string]object{
		"as it is": nil,
		"locked down by patches": {"cluster": object{}, "kustomize": object{"patches": []object{
			argument(referring, "--no-cross-namespace-refs=true"), argument("kustomize-controller", "--no-remote-bases=true"),
			argument(acting, "--default-service-account=default"),
			{"target": object{"kind": "Kustomization"}, "patch": "- {op: add, path: /spec/serviceAccountName, value: kustomize-controller}\n"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := Check(t.Context(), fleet(t, more), CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			require.Equal(t, []string{"clusters/production", "clusters/staging"}, report.Clusters)
		})
	}
	t.Run("with a source of another kind and name", func(t *testing.T) {
		dir := folder(t)
		put1(t, dir, "clusters/a/flux-instance.yaml", fluxInstance("a", object{"sync": object{"kind": "OCIRepository", "name": "fleet", "path": "./clusters/a/"}}))
		put1(t, dir, "clusters/a/apps.yaml",
			strings.ReplaceAll(document("", step{"apps", "./none", nil, nil}.object()), "kind: GitRepository\n    name: flux-system",
				"kind: OCIRepository\n    name: fleet"))
		report, err := Check(t.Context(), dir, CheckOptions{})
		require.NoError(t, err)
		require.Len(t, report.Findings, 1)
		require.Contains(t, report.Findings[0].Message, "spec.path ./none is not there")
	})
}

func TestWhatIsWrongWithAFluxInstanceIsFound(t *testing.T) {
	const file = "clusters/staging/flux-system/flux-instance.yaml"
	for name, c := range map[string]wrong{
		"not locked down": {func(t *testing.T, dir string) { rewrite(t, dir, file, "multitenant: true", "multitenant: false") }, file,
			"Flux is not locked down: Kustomization flux-system has no serviceAccountName kustomize-controller; set spec.cluster.multitenant: true"},
		"a part of the lockdown": {func(t *testing.T, dir string) {
			put1(t, dir, file,
				fluxInstance("staging", object{"cluster": object{}, "kustomize": object{"patches": []object{argument(acting, "--default-service-account=default")}}}))
		}, file, "FluxInstance flux-system/flux: Flux is not locked down: "},
		"its folder is not there": {func(t *testing.T, dir string) { rewrite(t, dir, file, "clusters/staging", "clusters/stagin") }, "clusters/stagin",
			"Flux begins with this folder, which is not there"},
		"no kustomization names it": {func(t *testing.T, dir string) {
			put1(t, dir, "clusters/staging/flux-system/kustomization.yaml", kustomization("", nil, nil))
		}, file, "Flux would delete what it applied before, and all of Flux with it"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, fleet(t, nil)) })
	}
}

func TestInitKeepsAFluxInstance(t *testing.T) {
	for name, c := range map[string]Told{"flux": {}, "arc": {Layout: LayoutArc}, "groups": {Layout: LayoutGroups}} {
		t.Run(name, func(t *testing.T) {
			root := map[string]string{"flux": "clusters/staging", "arc": "clusters/cluster1/platform", "groups": "clustergroups/dev"}[name]
			instance := path.Join(root, "flux-system/flux-instance.yaml")
			dir := folder(t)
			put1(t, dir, instance, strings.ReplaceAll(fluxInstance("", nil), "path: clusters/", "path: "+root))
			p, err := Prepare(dir, c)
			require.NoError(t, err)
			tree, err := NewPlatform(p)
			require.NoError(t, err)
			_, err = Write(dir, tree, WriteOptions{Force: true})
			require.NoError(t, err)
			require.NotContains(t, kept(t, dir), path.Join(root, "flux-system/gotk-sync.yaml"))
			list := path.Join(root, "flux-system/kustomization.yaml")
			resources, err := listIn(dir, list)
			require.NoError(t, err)
			require.Equal(t, []string{"flux-instance.yaml"}, resources)
			report, err := Check(t.Context(), light(t, dir), CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
		})
	}
	t.Run("in all clusters", func(t *testing.T) {
		dir := fleet(t, nil)
		p, err := Prepare(dir, Told{})
		require.NoError(t, err)
		tree, err := NewPlatform(p)
		require.NoError(t, err)
		for _, file := range tree.Files {
			require.NotContains(t, []string{"components/flux-lockdown/kustomization.yaml", ".github/workflows/e2e.yaml"}, file.Path)
		}
	})
}
