package scaffold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// As in flux2-multi-tenancy, whose overlays and bases set the namespace of their team.
func TestANamespaceOverATenantIsFoundAtItsLineAndNothingElseIs(t *testing.T) {
	for about, file := range map[string]string{"overlay": "tenants/staging/kustomization.yaml", "base": "tenants/base/iris-red/kustomization.yaml"} {
		t.Run(about, func(t *testing.T) {
			dir := light(t,
				example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}}, teams: []Team{{Tenant: alone("iris-red")}}}.write(t))
			rewrite(t, dir, file, "kind: Kustomization\n", "kind: Kustomization\nnamespace: apps\n")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			var named []resource.Finding
			for _, f := range report.Findings {
				if f.ID == "NamespaceSet" {
					named = append(named, f)
				}
				require.NotContains(t, f.Message, "Tenant apps/iris-red")
			}
			require.Len(t, named, 1)
			require.Equal(t, file, named[0].File)
			require.Contains(t, content(t, dir, file), "\nnamespace: apps\n")
			require.Equal(t, lineOf([]byte(content(t, dir, file)), "namespace"), named[0].Line)
			require.Positive(t, named[0].Line)
			require.Contains(t, named[0].Message, "the field namespace gives Tenant iris-red a namespace")
		})
	}
}

func TestANamespaceOverSeveralIsFoundAtItsLine(t *testing.T) {
	dir := small(t)
	rewrite(t, dir, "tenants/staging/kustomization.yaml", "kind: Kustomization\n", "kind: Kustomization\nnamespace: apps\n")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1, "%v", report.Findings)
	require.Equal(t, "NamespaceSet", report.Findings[0].ID)
	require.Equal(t, "tenants/staging/kustomization.yaml", report.Findings[0].File)
	require.Positive(t, report.Findings[0].Line)
	require.Contains(t, report.Findings[0].Message, "moves objects of several namespaces into one")
}

func TestANamespaceInTheObjectItselfIsFound(t *testing.T) {
	wrong{func(t *testing.T, dir string) {
		put1(t, dir, "infrastructure/policies/own/rules.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: ours, "+
			"namespace: apps}\nspec: {rules: [{images: ['**'], action: Deny}]}\n")
		rewrite(t, dir, "infrastructure/policies/own/kustomization.yaml", "resources: []", "resources: [rules.yaml]")
	}, "infrastructure/policies/own/rules.yaml", "a ClusterVerificationPolicy has no namespace: remove it"}.isFound(t, small(t))
}

func TestAFolderThatNoClusterAppliesIsFound(t *testing.T) {
	dir := small(t)
	put1(t, dir, "infrastructure/kyverno/kustomization.yaml", kustomize("resources: [source.yaml]\n"))
	put1(t, dir, "infrastructure/kyverno/source.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Equal(t, []resource.Finding{{ID: "NotApplied", Severity: resource.Warning, File: "infrastructure/kyverno/kustomization.yaml",
		Message: "no cluster applies this folder: name it in a Kustomization below clusters, or remove it"}}, report.Findings)

	// Whoever wants to keep it says so in the cluster's folder.
	put1(t, dir, "clusters/staging/kyverno.yaml", document("", step{"kyverno", "./infrastructure/kyverno", nil, nil}.object()))
	report, err = Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}
