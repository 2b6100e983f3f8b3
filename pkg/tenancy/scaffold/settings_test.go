package scaffold

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

func TestARunOfInitStartsFromTheOneBefore(t *testing.T) {
	const before = "layout: groups\ngroups: [infra-ops, dev]\nclusters: [dev/c1]\nconstraints: [images]\nenforcement: warn\nexemptNamespaces: [flux-system]\n"
	kept := Platform{Layout: LayoutGroups, Groups: []string{"infra-ops", "dev"}, Clusters: []string{"dev/c1"}, Constraints: []string{"images"},
		Enforcement: "warn", ExemptNamespaces: []string{"flux-system"}}
	for about, c := range map[string]struct {
		before string
		told   Told
		want   func(p *Platform)
	}{
		"nothing new": {before, Told{}, func(*Platform) {}},
		"lists grow": {before, Told{Settings: settings("groups=test", "clusters=[test/c2, dev/c1]", "exemptNamespaces=monitoring")}, func(p *Platform) {
			p.Groups, p.Clusters, p.ExemptNamespaces = []string{"infra-ops", "dev", "test"}, []string{"dev/c1", "test/c2"}, []string{"flux-system", "monitoring"}
		}},
		"values change": {before,
			Told{Layout: LayoutGroups, Settings: settings("enforcement=deny", "landwaiter.url=oci://registry.example.com/charts/landwaiter", "operator=true")},
			func(p *Platform) {
				p.Enforcement, p.Landwaiter.URL, p.Operator = "deny", "oci://registry.example.com/charts/landwaiter", true
			}},
		"a file replaces, and settings add": {before, Told{File: []byte("groups: [infra-ops, prod]\n"), Settings: settings("groups=dev")},
			func(p *Platform) { *p = Platform{Layout: LayoutGroups, Groups: []string{"infra-ops", "prod", "dev"}} }},
		"a new tree": {"", Told{Layout: LayoutArc, Settings: settings("clusters=c1")},
			func(p *Platform) { *p = Platform{Layout: LayoutArc, Clusters: []string{"c1"}} }},
		"namespaces besides those of the control plane": {"", Told{Settings: settings("exemptNamespaces=monitoring")}, func(p *Platform) {
			*p = Platform{ExemptNamespaces: []string{"kube-system", "gatekeeper-system", "landwaiter-system", "flux-system", "monitoring"}}
		}},
		"namespaces of the platform": {"", Told{Layout: LayoutGroups, Settings: settings("infrastructureNamespaces=monitoring")}, func(p *Platform) {
			*p = Platform{Layout: LayoutGroups,
				InfrastructureNamespaces: []string{"kube-system", "gatekeeper-system", "landwaiter-system", "flux-system", "external-secrets", "monitoring"}}
		}},
		"a store whose fields " +
			"nobody here knows": {before,
			Told{Settings: settings(`secretStores.dev={azurekv: {vaultUrl: https://dev.vault.azure.net, tenantId: "1", retries: 3, plain: true, keys: [a]}}`)},
			func(p *Platform) {
				p.SecretStores = map[string]map[string]any{
					"dev": {"azurekv": map[string]any{"vaultUrl": "https://dev.vault.azure.net", "tenantId": "1", "retries": int64(3), "plain": true, "keys": []any{"a"}}}}
			}},
	} {
		t.Run(about, func(t *testing.T) {
			dir, want := folder(t), kept
			if c.before != "" {
				put1(t, dir, SettingsFile, c.before)
			}
			c.want(&want)
			got, err := Prepare(dir, c.told)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// settings are those of a command line.
func settings(values ...string) onboard.Settings {
	return onboard.Settings{Values: values, Near: policy.Nearest}
}

func TestInitRefusesWhatContradictsTheTree(t *testing.T) {
	dir := folder(t)
	put1(t, dir, SettingsFile, "layout: flux\n")
	for message, c := range map[string]struct {
		dir  string
		told Told
	}{
		"has the layout flux: give --layout=arc a folder of its own":          {dir, Told{Layout: LayoutArc}},
		"has the layout flux: give --layout=groups a folder":                  {dir, Told{Settings: settings("layout=groups")}},
		"has the layout flux: give --layout=demo a folder":                    {dir, Told{File: []byte("layout: demo\n")}},
		"are two layouts for one tree":                                        {dir, Told{Layout: LayoutFlux, Settings: settings("layout=groups")}},
		"which is a platform's repository":                                    {filepath.Join(dir, "tenants"), Told{}},
		"--set enforcment: there is no such field; did you mean enforcement?": {dir, Told{Settings: settings("enforcment=deny")}},
		"read --filename: ":                                                   {dir, Told{File: []byte("enforcment: deny\n")}},
	} {
		_, err := Prepare(c.dir, c.told)
		require.ErrorContains(t, err, message)
	}
}

func TestPiecesOfTheAccountsRoleAreValuesOfTheChart(t *testing.T) {
	tree, err := NewPlatform(Platform{ReconcilerPieces: []string{"flux-images", "certificates"}})
	require.NoError(t, err)
	require.Contains(t, textOfFile(t, tree, "infrastructure/landwaiter/release.yaml"),
		"    reconciler:\n      pieces:\n      - flux-images\n      - certificates\n")
	tree, err = NewPlatform(Platform{})
	require.NoError(t, err)
	require.NotContains(t, textOfFile(t, tree, "infrastructure/landwaiter/release.yaml"), "reconciler")
	for message, p := range map[string]Platform{
		"reconcilerPieces: images: there is no such piece; use certificates, flux-images, ": {ReconcilerPieces: []string{"images"}},
		"reconcilerPieces: monitors is given twice":                                         {ReconcilerPieces: []string{"monitors", "monitors"}},
		"reconcilerPieces means nothing in the layout demo":                                 {Layout: LayoutDemo, ReconcilerPieces: []string{"monitors"}},
	} {
		_, err := p.Complete()
		require.ErrorContains(t, err, message)
	}
}

// textOfFile returns a file of a tree.
func textOfFile(t *testing.T, tree Tree, name string) string {
	t.Helper()
	at := slices.IndexFunc(tree.Files, func(f File) bool { return f.Path == name })
	require.NotEqual(t, -1, at, name)
	return tree.Files[at].Text
}
