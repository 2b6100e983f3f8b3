package scaffold

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAVersionThatTheTreesOwnDefinitionLacksIsFound(t *testing.T) {
	const file = "clusters/staging/agent.yaml"
	agent := func(version, definition string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			put1(t, dir, "clusters/staging/flux-system/gotk-components.yaml", definition)
			put1(t, dir, file, "apiVersion: helm.toolkit.fluxcd.io/"+version+"\nkind: HelmRelease\nmetadata: {name: agent, namespace: monitoring}\nspec: {interval: "+
				"1m, serviceAccountName: agent}\n")
		}
	}
	older := sourceCRD + "  - {name: v2beta2, served: true, storage: false}\n  - {name: v2beta1, served: false, storage: false}\n"
	for name, c := range map[string]struct{ version, definition, says string }{
		"not there": {"v2beta1", sourceCRD, "HelmRelease monitoring/agent: the tree's CRD of HelmRelease has no version v2beta1, so Flux applies nothing of this " +
			"folder: write apiVersion: helm.toolkit.fluxcd.io/v2, and compare the fields"},
		"not served":  {"v2beta1", older, "has no version v2beta1"},
		"too new":     {"v3", older, "write apiVersion: helm.toolkit.fluxcd.io/v2 or v2beta2"},
		"without CRD": {"v2beta1", "", "HelmRelease v2beta1 is outdated, and newer versions of Flux do not have it: write apiVersion: helm.toolkit.fluxcd.io/v2"},
	} {
		t.Run(name, func(t *testing.T) { wrong{agent(c.version, c.definition), file, c.says}.isFound(t, small(t)) })
	}
	for name, version := range map[string]string{"the newest": "v2", "an old one that is served": "v2beta2"} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			agent(version, older)(t, dir)
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			for _, f := range report.Findings {
				require.NotContains(t, f.ID, "Version", f.Message)
			}
		})
	}
}

func TestOutdatedVersionsOfAllKindsOfFluxAreFound(t *testing.T) {
	for name, outdated := range map[string]bool{
		"image.toolkit.fluxcd.io/v1beta1 ImagePolicy":            true,
		"image.toolkit.fluxcd.io/v1beta2 ImageUpdateAutomation":  true,
		"image.toolkit.fluxcd.io/v1 ImageRepository":             false,
		"notification.toolkit.fluxcd.io/v1beta1 Alert":           true,
		"notification.toolkit.fluxcd.io/v1beta3 Provider":        false,
		"notification.toolkit.fluxcd.io/v1 Provider":             false,
		"notification.toolkit.fluxcd.io/v1beta3 Receiver":        true,
		"notification.toolkit.fluxcd.io/v1 Receiver":             false,
		"source.toolkit.fluxcd.io/v1beta2 HelmChart":             true,
		"source.toolkit.fluxcd.io/v1 ExternalArtifact":           false,
		"source.extensions.fluxcd.io/v1alpha1 ArtifactGenerator": true,
		"source.extensions.fluxcd.io/v1beta1 ArtifactGenerator":  false,
		"helm.toolkit.fluxcd.io/v3 HelmRelease":                  false,
		"example.toolkit.fluxcd.io/v1alpha1 Other":               false,
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			version, kind, _ := strings.Cut(name, " ")
			put1(t, dir, "kustomization.yaml", kustomization("", []string{"a.yaml"}, nil))
			put1(t, dir, "a.yaml", "apiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: a}\nspec: {interval: 1m}\n")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Equal(t, outdated, len(withoutNotes(report.Findings)) > 0, "%+v", report.Findings)
		})
	}
}

// As the team's branch of flux2-multi-tenancy once was; a team's repository has no CRDs.
func TestOutdatedVersionsInATeamsRepositoryAreFound(t *testing.T) {
	dir := folder(t)
	put1(t, dir, "base/kustomization.yaml", kustomization("", []string{"podinfo.yaml"}, nil))
	put1(t, dir, "base/podinfo.yaml", `apiVersion: source.toolkit.fluxcd.io/v1beta1
kind: HelmRepository
metadata: {name: podinfo}
spec: {interval: 5m, url: https://stefanprodan.github.io/podinfo}
---
apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
metadata: {name: podinfo}
spec: {interval: 5m}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1beta2
kind: Kustomization
metadata: {name: more}
spec: {interval: 5m, prune: true, sourceRef: {kind: GitRepository, name: podinfo}}
---
apiVersion: example.com/v1beta1
kind: Other
metadata: {name: other}
`)
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	var found []string
	for _, f := range withoutNotes(report.Findings) {
		require.Equal(t, "VersionOutdated", f.ID)
		found = append(found, f.Message)
	}
	require.Len(t, found, 3)
	require.Contains(t, found[0], "HelmRelease podinfo: HelmRelease v2beta1 is outdated")
	require.Contains(t, found[1], "HelmRepository podinfo: HelmRepository v1beta1 is outdated")
	require.Contains(t, found[2], "Kustomization more: Kustomization v1beta2 is outdated")
}
