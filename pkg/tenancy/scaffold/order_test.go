package scaffold

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const tenantsStepFile, crdsStepFile = "clusters/staging/tenants.yaml", "clusters/staging/infrastructure.yaml"

// teamRestricted adds a constraint and a guardrail to a tree without the long manifests.
func teamRestricted(t *testing.T, dir string) {
	t.Helper()
	put1(t, dir, "infrastructure/guardrails/kustomization.yaml", kustomization("", []string{"guardrails.yaml"}, nil))
	put1(t, dir, "infrastructure/guardrails/guardrails.yaml", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: "+
		"landwaiter-tenant-labels}\n")
	put1(t, dir, "infrastructure/crds/kustomization.yaml", kustomization("", []string{"crd.yaml"}, nil))
	put1(t, dir, "infrastructure/crds/crd.yaml", strings.ReplaceAll(sourceCRD, "helm.toolkit.fluxcd.io", "example.com"))
}

func TestTenantsWaitForWhatRestrictsThem(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"guardrails are not awaited": {"  - name: guardrails\n", "", "Kustomization flux-system/tenants applies Tenants and does not wait for Kustomization " +
			"flux-system/guardrails, so pods of teams can start before what restricts them exists: add guardrails to spec.dependsOn"},
		"nothing is awaited":      {"  dependsOn:\n  - name: policies\n  - name: guardrails\n", "", "does not wait for Kustomization flux-system/policies"},
		"another step is awaited": {"  - name: policies\n  - name: guardrails\n", "  - name: crds\n", "does not wait for Kustomization flux-system/landwaiter"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong{func(t *testing.T, dir string) {
				teamRestricted(t, dir)
				rewrite(t, dir, tenantsStepFile, c.from, c.to)
			}, tenantsStepFile, c.says}.isFound(t, small(t))
		})
	}
	t.Run("guardrails are awaited through another step", func(t *testing.T) {
		dir := small(t)
		teamRestricted(t, dir)
		rewrite(t, dir, tenantsStepFile, "  - name: policies\n  - name: guardrails\n", "  - name: guardrails\n")
		report, err := Check(t.Context(), dir, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

func TestAKustomizationThatDeletesDefinitionsIsFound(t *testing.T) {
	pruned := func(t *testing.T, dir string) {
		t.Helper()
		teamRestricted(t, dir)
		rewrite(t, dir, crdsStepFile, "prune: false", "prune: true")
	}
	wrong{pruned, crdsStepFile, "Kustomization flux-system/crds applies CRDs with spec.prune: true, so a CRD that leaves infrastructure/crds is deleted in the " +
		"cluster, with all objects of its kind"}.isFound(t, small(t))
	for name, keep := range map[string]func(t *testing.T, dir string){
		"an annotation": func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/crds/kustomization.yaml", "kind: Kustomization\n",
				"kind: Kustomization\ncommonAnnotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n")
		},
		"a label": func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/crds/kustomization.yaml", "kind: Kustomization\n",
				"kind: Kustomization\nlabels: [{pairs: {kustomize.toolkit.fluxcd.io/prune: disabled}}]\n")
		},
		"an annotation of the Kustomization": func(t *testing.T, dir string) {
			rewrite(t, dir, crdsStepFile, "prune: true\n", "prune: true\n  commonMetadata: {annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}\n")
		},
		"a label of the Kustomization": func(t *testing.T, dir string) {
			rewrite(t, dir, crdsStepFile, "prune: true\n", "prune: true\n  commonMetadata: {labels: {kustomize.toolkit.fluxcd.io/prune: disabled}}\n")
		},
		"reconcile": func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/crds/kustomization.yaml", "kind: Kustomization\n",
				"kind: Kustomization\ncommonAnnotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}\n")
		},
	} {
		t.Run("Flux keeps what has "+name, func(t *testing.T) {
			dir := small(t)
			pruned(t, dir)
			keep(t, dir)
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			for _, f := range report.Findings {
				require.NotEqual(t, "DefinitionsPruned", f.ID, f.Message)
			}
		})
	}
}

func TestCheckFindsNamespacesThatNothingCreates(t *testing.T) {
	const own = "infrastructure/policies/own/rights.yaml"
	object := func(namespace string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			put1(t, dir, own, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: "+namespace+"}\n")
			rewrite(t, dir, "infrastructure/policies/own/kustomization.yaml", "resources: []", "resources: [rights.yaml]")
		}
	}
	near := func(name string, names []string) (string, bool) {
		return "iris-red-web", name == "iris-rde-web" && slices.Contains(names, "iris-red-web")
	}
	for name, c := range map[string]struct {
		change   func(t *testing.T, dir string)
		file     string
		severity resource.Severity
		says     string
	}{
		"a misspelt one": {object("iris-rde-web"), own, resource.Warning, "ConfigMap iris-rde-web/x: metadata.namespace is iris-rde-web, which nothing in the tree " +
			"creates (is iris-red-web meant?)"},
		"one of others": {object("monitoring"), own, resource.Note, "metadata.namespace is monitoring, which nothing in the tree creates; without it"},
		"of a chart": {func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/gatekeeper/release.yaml", "targetNamespace: gatekeeper-system", "targetNamespace: gatekeeper-systm")
		}, "infrastructure/gatekeeper/release.yaml", resource.Note, "spec.targetNamespace is gatekeeper-systm"},
		"one that the tree had": {func(t *testing.T, dir string) {
			rewrite(t, dir, "infrastructure/gatekeeper/kustomization.yaml", "- namespace.yaml\n", "")
			require.NoError(t, os.Remove(filepath.Join(dir, "infrastructure/gatekeeper/namespace.yaml")))
		}, "infrastructure/gatekeeper/release.yaml", resource.Warning, "is gatekeeper-system, which nothing in the tree creates"},
		"of an account": {func(t *testing.T, dir string) {
			grants(t, dir, bound("RoleBinding", "name: x, namespace: iris-red-web", "view", "kind: ServiceAccount, name: iris-blue, namespace: iris-blue"))
		}, own, resource.Note, "RoleBinding iris-red-web/x: subjects[0].namespace is iris-blue, which nothing in the tree creates; if it was that of a team that " +
			"is gone, whoever creates it again has these permissions"},
		"one of the control plane":      {object("kube-public"), "", "", ""},
		"one with the prefix of a team": {object("iris-red-dev"), "", "", ""},
		"one that a chart makes": {func(t *testing.T, dir string) {
			object("monitoring")(t, dir)
			put1(t, dir, own, content(t, dir, own)+"---\n"+
				strings.Replace(goodRelease, "interval: 1m", "interval: 1m, targetNamespace: monitoring, install: {createNamespace: true}", 1)+
				"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: app, "+
				"namespace: apps}\nspec: {interval: 1m, url: 'https://charts.example.com'}\n")
		}, "", "", ""},
		"one that the settings name": {func(t *testing.T, dir string) {
			object("monitoring")(t, dir)
			rewrite(t, dir, SettingsFile, "infrastructureNamespaces:\n", "infrastructureNamespaces:\n- monitoring\n")
		}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			c.change(t, dir)
			report, err := Check(t.Context(), dir, CheckOptions{Near: near})
			require.NoError(t, err)
			if c.says == "" {
				require.Empty(t, report.Findings)
				return
			}
			require.Len(t, report.Findings, 1)
			f := report.Findings[0]
			require.Equal(t, []string{"NamespaceMissing", string(c.severity), c.file}, []string{f.ID, string(f.Severity), f.File})
			require.Contains(t, f.Message, c.says)
		})
	}
}
