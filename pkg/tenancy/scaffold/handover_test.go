package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// switched is the platform of a tree that gets the operator.
func switched(t *testing.T, dir string) (Platform, error) {
	t.Helper()
	p, err := Prepare(dir, Told{Settings: settings("operator=true")})
	require.NoError(t, err)
	p, err = p.Complete()
	require.NoError(t, err)
	return p, p.KeepsTeams(dir)
}

// keep adds the line that the refusal asks for.
func keep(t *testing.T, dir, name string) {
	t.Helper()
	put1(t, dir, name, content(t, dir, name)+"commonAnnotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n")
}

func TestTheOperatorTakesATreesTeamsOverOnlyOnceFluxKeepsThem(t *testing.T) {
	a := addition(t, Platform{})
	_, err := switched(t, a.Dir)
	require.NoError(t, err, "a tree without teams")
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	light(t, a.Dir)

	var refused *RefusedError
	_, err = switched(t, a.Dir)
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "\nto tenants/staging/kustomization.yaml, tenants/production/kustomization.yaml, "+
		"infrastructure/guardrails/kustomization.yaml, merge,")
	keep(t, a.Dir, "tenants/staging/kustomization.yaml")
	keep(t, a.Dir, "tenants/production/kustomization.yaml")
	_, err = switched(t, a.Dir)
	require.ErrorContains(t, err, "disabled}\nto infrastructure/guardrails/kustomization.yaml, merge,")
	keep(t, a.Dir, "infrastructure/guardrails/kustomization.yaml")
	p, err := switched(t, a.Dir)
	require.NoError(t, err)

	// As long as nobody runs scaffold, Flux applies the objects as before, and keeps each of them.
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	_, err = Write(a.Dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)
	built := loaded(t, a.Dir).build("tenants/staging")
	require.Greater(t, len(built.objects), 5)
	for _, o := range built.objects {
		require.Equal(t, pruneDisabled, o.GetAnnotations()[pruneAnnotation], identity(o))
	}
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"objects.yaml", "sync.yaml"} {
		require.NoError(t, os.Remove(filepath.Join(a.Dir, "tenants/base/shop", name)))
	}
	built = loaded(t, a.Dir).build("tenants/staging")
	require.Len(t, built.objects, 1)
	require.Equal(t, "Tenant", built.objects[0].GetKind())
	rewrite(t, a.Dir, "tenants/staging/kustomization.yaml", "commonAnnotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n", "")
	_, err = switched(t, a.Dir)
	require.NoError(t, err, "the line may go once the operator has the objects")
	_, err = a.Run(t.Context())
	require.NoError(t, err)
}

// Somebody may edit the settings, and run scaffold first.
func TestATeamOfATreeWithTheOperatorIsNotTakenFromFlux(t *testing.T) {
	for name, p := range map[string]Platform{"flux": {}, "groups": {Layout: LayoutGroups}, "arc": {Layout: LayoutArc, Clusters: []string{"cluster1"}}} {
		t.Run(name, func(t *testing.T) {
			a := addition(t, p)
			_, err := a.Run(t.Context())
			require.NoError(t, err)
			put1(t, a.Dir, SettingsFile, content(t, a.Dir, SettingsFile)+"operator: true\n")
			_, err = a.Run(t.Context())
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, "Flux deletes the objects that Tenant shop has in the tree")
			a.Team.Tenant = shop(t)
			a.Team.Tenant.Name, a.Team.Tenant.Spec.HomeNamespace = "other", "other"
			_, err = a.Run(t.Context())
			require.NoError(t, err, "a team that Flux applies nothing of")
		})
	}
}

// The Kustomization of the public repository has no label of a Tenant.
func TestARepositoryIsTakenOverByTheOperatorOnlyOnceFluxKeepsItsTeams(t *testing.T) {
	dir := filepath.Join(folder(t), "fleet")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../../test/gitops/testdata/flux2-multi-tenancy")))
	_, err := switched(t, dir)
	require.ErrorContains(t, err, "tenants/staging/kustomization.yaml, tenants/production/kustomization.yaml, merge,")
	put1(t, dir, "tenants/base/dev-team/kustomization.yaml",
		strings.ReplaceAll(content(t, dir, "tenants/base/dev-team/kustomization.yaml"), "sync.yaml", "gone.yaml"))
	_, err = switched(t, dir)
	require.ErrorContains(t, err, "does not build, so it is unclear whether Flux would delete objects of teams")
}
