package scaffold

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// composed is a tree as flux2-kustomize-helm-example: the Kustomization apps applies a folder of an artifact with
// what copies say.
func composed(t *testing.T, target, copies string) string {
	t.Helper()
	dir := small(t)
	apps := document("", step{"apps", target, nil, nil}.object())
	put1(t, dir, "clusters/staging/apps.yaml", strings.ReplaceAll(apps, "kind: GitRepository\n    name: flux-system", "kind: ExternalArtifact\n    name: apps"))
	put1(t, dir, "clusters/staging/artifacts.yaml", `apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: flux-system, namespace: flux-system}
spec:
  sources:
  - {alias: monorepo, kind: GitRepository, name: flux-system}
  - {alias: other, kind: GitRepository, name: other}
  artifacts:
  - name: apps
    copy: [`+copies+"]\n")
	put1(t, dir, "apps/base/kustomization.yaml", kustomization("", []string{"settings.yaml"}, nil))
	put1(t, dir, "apps/base/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
	put1(t, dir, "apps/staging/kustomization.yaml", kustomization("", []string{"../base"}, nil))
	return dir
}

const (
	copyApps    = `{from: "@monorepo/apps/base/**", to: "@artifact/base/"}, {from: "@monorepo/apps/staging/**", to: "@artifact/staging/"}`
	settingFile = "apps/base/settings.yaml"
)

func TestArtifactsOfTheTreeAreFollowed(t *testing.T) {
	for name, c := range map[string]struct{ target, copies string }{
		"folders":        {"./staging", copyApps},
		"their parent":   {"./staging", `{from: "@monorepo/apps/**", to: "@artifact/"}`},
		"the whole tree": {"./apps/staging", `{from: "@monorepo/**", to: "@artifact/"}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := composed(t, c.target, c.copies)
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			wrong{func(t *testing.T, dir string) { rewrite(t, dir, settingFile, "default}", "default}\nspec: {}") }, settingFile, `unknown field "spec"`}.isFound(t, dir)
		})
	}
	wrong{func(t *testing.T, dir string) {
		rewrite(t, dir, "clusters/staging/artifacts.yaml", "- name: apps", "- name: app")
	},
		"clusters/staging/apps.yaml", "spec.sourceRef names ExternalArtifact flux-system/apps, which is not there"}.isFound(t, composed(t, "./staging", copyApps))
}

func TestAnArtifactThatIsNoFolderOfTheTreeIsANote(t *testing.T) {
	for name, c := range map[string]struct{ target, copies, want string }{
		"another layout": {"./staging", `{from: "@monorepo/apps/base/**", to: "@artifact/lib/"}, {from: "@monorepo/apps/staging/**", to: "@artifact/staging/"}`,
			"NotFollowed"},
		"single files":       {"./", `{from: "@monorepo/apps/base/*.yaml", to: "@artifact/"}, {from: "@monorepo/apps/staging/**", to: "@artifact/"}`, "NotFollowed"},
		"parts are left out": {"./staging", `{from: "@monorepo/apps/**", to: "@artifact/", exclude: ["base/**"]}`, "NotFollowed"},
		"of two sources":     {"./staging", copyApps + `, {from: "@other/more/**", to: "@artifact/more/"}`, "NotFollowed"},
		"a folder it lacks":  {"./production", copyApps, "NotFollowed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := composed(t, c.target, c.copies)
			put1(t, dir, "apps/staging/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: default}\n")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Len(t, report.Findings, 1, "%+v", report.Findings)
			require.Equal(t, c.want, report.Findings[0].ID)
			require.Equal(t, "Kustomization flux-system/apps: what ArtifactGenerator flux-system/flux-system copies for it is not a folder of this tree as it is, so "+
				"it was not followed, and what it applies was not checked", report.Findings[0].Message)
		})
	}
}

func TestALockoutIsFoundInATreeWithArtifacts(t *testing.T) {
	p, err := Platform{Enforcement: "deny", Constraints: []string{imagesSet}, Environments: []string{"staging"}}.Complete()
	require.NoError(t, err)
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	nothing := func(context.Context, string) (func(namespace, image string) bool, error) {
		return func(string, string) bool { return false }, nil
	}
	err = p.CheckLockout(t.Context(), composed(t, "./staging", copyApps), tree, WriteOptions{Force: true}, nothing)
	require.ErrorContains(t, err, "pods that the platform needs would not start any more")
}
