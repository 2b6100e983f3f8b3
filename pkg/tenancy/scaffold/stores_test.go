package scaffold

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// shared is a tree of groups with a shared store.
func shared(provider string) Platform {
	return Platform{Layout: LayoutGroups, Clusters: []string{"dev/c1"}, Groups: []string{"dev"}, Constraints: []string{secretsSet},
		SecretStores: map[string]map[string]any{"dev": {provider: map[string]any{"vaultUrl": "https://dev.vault.azure.net"}}}}
}

func TestCheckFindsSecretsOfThePlatformThatTheRuleForTeamsDenies(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, store, labels string
		infrastructure           []string
		denied                   bool
	}{
		"a namespace of the platform":        {namespace: "grafana", store: "ClusterSecretStore", denied: true},
		"named in the settings":              {namespace: "grafana", store: "ClusterSecretStore", infrastructure: []string{"grafana"}},
		"a store of the namespace":           {namespace: "grafana", store: "SecretStore"},
		"a namespace with a Tenant's label":  {namespace: "grafana", store: "ClusterSecretStore", labels: ", labels: {landwaiter.dev/tenant: shop}"},
		"a namespace with a Tenant's prefix": {namespace: "iris-red-x", store: "ClusterSecretStore"},
	} {
		t.Run(name, func(t *testing.T) {
			platform := shared("azurekv")
			platform.InfrastructureNamespaces = c.infrastructure
			dir := light(t, example{platform: &platform, teams: []Team{{Tenant: team("iris-red", nil)}}}.write(t))
			put1(t, dir, "apps/clusters/c1/secret.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+c.namespace+c.labels+"}\n---\n"+
				"apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: admin, namespace: "+c.namespace+"}\nspec: {secretStoreRef: {kind: "+c.store+
				", name: cluster-wide-store}, dataFrom: [{extract: {key: grafana}}]}\n")
			rewrite(t, dir, "apps/clusters/c1/kustomization.yaml", "resources: []", "resources: [secret.yaml]")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			if !c.denied {
				require.Empty(t, report.Findings)
				return
			}
			require.Len(t, report.Findings, 1)
			require.Equal(t, "ExternalSecretDenied", report.Findings[0].ID)
			require.Equal(t, "apps/clusters/c1/secret.yaml", report.Findings[0].File)
			require.Contains(t, report.Findings[0].Message, "ExternalSecret grafana/admin uses a ClusterSecretStore, and constraint external-secret-tenant-keys "+
				"denies that in namespace grafana, which is no team's: run platform init with --set infrastructureNamespaces=grafana")
		})
	}
}

func TestAMisspeltProviderIsRefusedAndANewOneIsNoted(t *testing.T) {
	for _, misspelt := range []string{"azurekeyv", "azureKV", "valut", "AWS"} {
		_, err := Prepare(folder(t), Told{Layout: LayoutGroups, Settings: settings("secretStores.dev={" + misspelt + ": {a: b}}")})
		require.ErrorContains(t, err, "external-secrets has no provider "+misspelt+"; did you mean ")
	}
	for _, known := range append(providers(), "kms") {
		_, err := Prepare(folder(t), Told{Layout: LayoutGroups, Settings: settings("secretStores.dev={" + known + ": {a: b}}")})
		require.NoError(t, err)
	}
	platform := shared("somethingentirelynew")
	report, err := Check(t.Context(), light(t, example{platform: &platform}.write(t)), CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Equal(t, "ProviderUnknown", report.Findings[0].ID)
	require.Equal(t, resource.Note, report.Findings[0].Severity)
	require.True(t, strings.HasPrefix(report.Findings[0].Message, "secretStores: dev: "))
}
