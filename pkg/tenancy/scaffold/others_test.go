package scaffold

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

func TestANamespaceOfAnotherTeamIsRefused(t *testing.T) {
	for name, p := range map[string]Platform{"flux": {}, "arc": {Layout: LayoutArc, Clusters: []string{"cluster1", "cluster2"}}} {
		t.Run(name, func(t *testing.T) {
			a := addition(t, p)
			a.Team.Places = p.Clusters[:min(1, len(p.Clusters))]
			_, err := a.Run(t.Context())
			require.NoError(t, err)
			_, err = a.Run(t.Context())
			require.NoError(t, err, "its own namespaces")
			tenant, err := onboard.Description{Name: "web", Settings: settings("namespaces=shop")}.Tenant()
			require.NoError(t, err)
			a.Team.Tenant = tenant
			_, err = a.Run(t.Context())
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, "tenant.yaml: namespace shop is in Tenant shop, so Tenant web cannot have it too")
			if p.Layout == LayoutArc {
				a.Team.Places = []string{"cluster2"}
				_, err = a.Run(t.Context())
				require.NoError(t, err, "another cluster")
			}
		})
	}
}

func TestARunSaysWhatATeamStillNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		platform Platform
		values   []string
		says     []string
	}{
		"no repository": {Platform{}, nil, []string{"with --set reconciler.source.url=URL"}},
		"nothing":       {Platform{}, []string{"reconciler.source.url=https://github.com/example/shop"}, nil},
		"namespaces of its own": {Platform{},
			[]string{"reconciler.source.url=https://github.com/example/shop", "reconciler.createNamespaces=true", "namespacePrefix=shop-"},
			[]string{"after each new namespace, run landwaiter tenant add shop"}},
		"the operator " +
			"provisions them": {Platform{Operator: true},
			[]string{"reconciler.source.url=https://github.com/example/shop", "reconciler.createNamespaces=true", "namespacePrefix=shop-"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := addition(t, c.platform)
			a.Team.Tenant = shop(t, c.values...)
			added, err := a.Run(t.Context())
			require.NoError(t, err)
			require.Len(t, added.Hints, len(c.says))
			for i, says := range c.says {
				require.Contains(t, added.Hints[i], says)
			}
		})
	}
}

func TestCheckOfAPartOfATreeSaysThatItFollowsNoCluster(t *testing.T) {
	dir := small(t)
	report, err := Check(t.Context(), filepath.Join(dir, "tenants"), CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Equal(t, "NoClusterFollowed", report.Findings[0].ID)
	require.Contains(t, report.Findings[0].Message, "run landwaiter platform check "+dir)
}

func TestTheDemosRepositoryIsNotTakenForAnother(t *testing.T) {
	dir := folder(t)
	put1(t, dir, demoKustomization, kustomization("", nil, nil))
	_, err := Prepare(dir, Told{})
	require.ErrorContains(t, err, "give --layout=demo")
	for _, layout := range []Layout{LayoutDemo, LayoutFlux} {
		_, err = Prepare(dir, Told{Layout: layout})
		require.NoError(t, err)
	}
}

func TestATenantOfTheDemoHasTheDemosRepository(t *testing.T) {
	tenant, err := onboard.Description{Name: "sometenant", DemoNamespace: "foo",
		Settings: settings("reconciler.source.url=https://github.com/example/demo")}.Tenant()
	require.NoError(t, err)
	a := addition(t, Platform{})
	a.Team.Tenant, a.Whole = tenant, true
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	dir := filepath.Join(folder(t), "demo")
	_, err = Own{Dir: dir, Repository: Repository{Tenant: tenant}, From: filepath.Join(a.Dir, "tenants/base/sometenant/tenant.yaml")}.Run(t.Context())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, demoKustomization))
	report, err := Check(t.Context(), light(t, a.Dir), CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}
