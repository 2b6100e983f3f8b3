package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowList is that of flux2-kustomize-helm-example.
const allowList = "# Exclude all\n/*\n\n# Include manifest directories\n!/apps/\n!/clusters/\n!/infrastructure/\n"

func TestFilesThatFluxDoesNotGetAreMissing(t *testing.T) {
	const sync = "clusters/staging/flux-system/gotk-sync.yaml"
	source := func(ignore string) string {
		return document("", object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": named(fluxNamespace, platformSource),
			"spec": object{"interval": "1m", "url": "https://example.com/fleet", "ignore": ignore}})
	}
	for name, c := range map[string]struct{ name, text, file, says string }{
		"a component": {ignoreFile, allowList, "clusters/staging/flux-system/kustomization.yaml",
			"is in the tree, but Flux does not get it, because the pattern /* of .sourceignore excludes it: add the line !/components/ to .sourceignore, or " +
				"remove the pattern"},
		"a folder of a Kustomization": {ignoreFile, allowList + "!/components/\n", "clusters/staging/tenants.yaml",
			"spec.path ./tenants/staging is in the tree, but Flux does not get it, because the pattern /* of .sourceignore"},
		"a cluster": {ignoreFile, "clusters/\n", "clusters/staging",
			"Flux begins with this folder, which is in the tree, but Flux does not get it, because the pattern clusters/ of .sourceignore"},
		"a file in a folder's own": {"infrastructure/" + ignoreFile, "kustomization.yaml\n/policies\n", "clusters/staging/infrastructure.yaml",
			"the pattern /policies of infrastructure/.sourceignore"},
		"by the source": {sync, source("/*\n!/clusters\n!/components\n"), "clusters/staging/tenants.yaml",
			"the pattern /* of spec.ignore of the source flux-system excludes it: add the line !/tenants/ to spec.ignore, or remove the pattern"},
		"by a patch of the source": {"clusters/staging/flux-system/kustomization.yaml",
			kustomization("", []string{"gotk-components.yaml", "gotk-sync.yaml"},
				object{"patches": []object{{"target": object{"kind": "GitRepository"}, "patch": "- {op: add, path: /spec/ignore, value: /tenants}\n"}}}),
			"clusters/staging/tenants.yaml", "the pattern /tenants of spec.ignore of the source flux-system"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong{func(t *testing.T, dir string) { put1(t, dir, c.name, c.text) }, c.file, c.says}.isFound(t, small(t))
		})
	}
	t.Run("the source of another cluster", func(t *testing.T) {
		dir := small(t)
		put1(t, dir, sync, source("/tenants/production\n"))
		const production = "clusters/production/flux-system"
		require.NoError(t, os.CopyFS(filepath.Join(dir, production), os.DirFS(filepath.Join(dir, "clusters/staging/flux-system"))))
		put1(t, dir, production+"/gotk-sync.yaml", source("/tenants/staging\n"))
		report, err := Check(t.Context(), dir, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
	t.Run("the source has the last word", func(t *testing.T) {
		dir := small(t)
		put1(t, dir, ignoreFile, "/tenants/staging\n")
		put1(t, dir, sync, source("!/tenants/staging\n"))
		report, err := Check(t.Context(), dir, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

func TestWhatFluxDoesNotGetIsNoManifest(t *testing.T) {
	step := step{"apps", "./apps", nil, nil}
	for name, c := range map[string]struct {
		ignore, file string
		wants        string
	}{
		"by default":                 {"", "apps/.sops.yaml", ""},
		"not if the tree has a list": {"docs/\n", "apps/.sops.yaml", "DoesNotBuild"},
		"by the list":                {"*-sample.yaml\n", "apps/a-sample.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			put1(t, dir, ignoreFile, c.ignore)
			put1(t, dir, "clusters/staging/apps.yaml", document("", step.object()))
			put1(t, dir, "apps/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
			put1(t, dir, c.file, "creation_rules: []\n")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			var found []string
			for _, f := range report.Findings {
				found = append(found, f.ID)
			}
			require.Equal(t, c.wants, strings.Join(found, " "), "%v", report.Findings)
		})
	}
	wrong{func(t *testing.T, dir string) {
		put1(t, dir, ignoreFile, "notes/\n")
		put1(t, dir, "notes/login.yaml", plainSecret)
	}, "notes/login.yaml", "a Secret in plain text"}.isFound(t, small(t))
}

// Each line is as go-git has it, which Flux reads patterns with.
func TestPatternsAreAsInGitignore(t *testing.T) {
	for _, c := range []struct {
		patterns, name string
		excluded       bool
	}{
		{"/*", "apps/a.yaml", true},
		{"/*\n!/apps/", "apps/a/b.yaml", false},
		{"/*\n!/apps/", "apps", true},
		{"!/apps/\n/*", "apps/a.yaml", true},
		{"docs", "a/docs/b.yaml", true},
		{"/docs", "a/docs/b.yaml", false},
		{"docs/", "docs", false},
		{"a/docs", "b/a/docs/c.yaml", false},
		{"**/a.yaml", "a.yaml", true},
		{"**/a.yaml", "b/c/a.yaml", true},
		{"b/**", "b/c/a.yaml", true},
		{"b/**/a.yaml", "b/a.yaml", true},
		{"b/**/a.yaml", "b/c/a.yml", false},
		{"b**/c", "bb/c", false},
		{"*.md  ", "README.md", true},
		{"[", "a", false},
		{"#docs\n \ndocs\r\n", "docs/a", true},
	} {
		_, excluded := ignoredBy(ignorePatterns(c.patterns, ignoreFile, "."), c.name)
		require.Equal(t, c.excluded, excluded, "%q %s", c.patterns, c.name)
	}
}

func TestATreeThatFluxWouldNotGetIsRefused(t *testing.T) {
	dir := folder(t)
	put1(t, dir, ignoreFile, allowList)
	tree, err := NewPlatform(Platform{})
	require.NoError(t, err)
	for _, o := range []WriteOptions{{}, {Force: true}, {DryRun: true}} {
		_, err = Write(dir, tree, o)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "nothing was written: .sourceignore excludes files that Flux must get from this tree: add these lines at its end, and run this "+
			"again\n!/components/\n!/tenants/", err.Error())
	}
	put1(t, dir, ignoreFile, allowList+"!/components/\n!/tenants/\n")
	_, err = Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
}
