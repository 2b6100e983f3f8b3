package scaffold

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// irisClusters are those of the repository that the layout is after.
func irisClusters() Platform {
	return Platform{Layout: LayoutGroups,
		Clusters: []string{"infra-ops/eks.eks-warroyo2.us-west-2.infra-ops", "dev/eks.eks-warroyo2.us-west-2.iris-dev", "test/aks.00439d3b.tmc-clusters.iris-test"}}
}

// appliedIn returns what Flux applies in each cluster of a tree that is sound.
func appliedIn(t *testing.T, dir string) map[string][]applied {
	t.Helper()
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	c := loaded(t, dir)
	c.inspect()
	settings, err := ReadPlatform(c.files[SettingsFile])
	require.NoError(t, err)
	complete, err := settings.Complete()
	require.NoError(t, err)
	c.settings = &complete
	all := map[string][]applied{}
	for _, from := range c.clusters() {
		one := c.begin(from)
		all[from.variables["cluster_name"]] = one.objects
	}
	return all
}

// named1 returns the object of a kind and name, nil if there is none.
func named1(objects []applied, kind, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o.Unstructured
		}
	}
	return nil
}

func TestClustersWithDotsInTheirNamesAreAppliedToTheLastFolder(t *testing.T) {
	platform := irisClusters()
	dir := light(t,
		example{platform: &platform, teams: []Team{{Tenant: team("iris-green", nil)}, {Tenant: team("iris-red", nil), Places: []string{"dev"}}}}.write(t))
	all := appliedIn(t, dir)
	require.Len(t, all, 3)
	for name, teams := range map[string][]string{
		"eks.eks-warroyo2.us-west-2.infra-ops": nil, "eks.eks-warroyo2.us-west-2.iris-dev": {"iris-green", "iris-red"},
		"aks.00439d3b.tmc-clusters.iris-test": {"iris-green"},
	} {
		require.NotNil(t, named1(all[name], "HelmRelease", "landwaiter"), name)
		for _, team := range []string{"iris-green", "iris-red"} {
			sync := named1(all[name], "Kustomization", team)
			require.Equal(t, slices.Contains(teams, team), sync != nil, "%s in %s", team, name)
			if sync != nil {
				path, _, _ := unstructured.NestedString(sync.Object, "spec", "path")
				require.Equal(t, "./clusters/"+name, path)
			}
		}
	}
	repository, err := NewRepository(Repository{Layout: LayoutGroups, Tenant: team("iris-green", nil), Places: []string{"aks.00439d3b.tmc-clusters.iris-test"}})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(repository.Files, func(f File) bool {
		return f.Path == "clusters/aks.00439d3b.tmc-clusters.iris-test/kustomization.yaml"
	}), "the team's repository has the folder that Flux applies there")
}

func TestAppsOfAGroupAndOfAClusterAreAppliedThereAlone(t *testing.T) {
	platform := Platform{Layout: LayoutGroups, Clusters: []string{"dev/c1", "dev/c2", "test/c3"}, Constraints: []string{imagesSet}, SOPSAge: recipient}
	dir := light(t, example{platform: &platform}.write(t))
	for folder, name := range map[string]string{"apps/clustergroups/dev": "group", "apps/clusters/c1": "one"} {
		put1(t, dir, folder+"/app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: default}\ndata: {cluster: \"${cluster_name}\"}\n")
		rewrite(t, dir, folder+"/kustomization.yaml", "resources: []", "resources: [app.yaml]")
	}
	all := appliedIn(t, dir)
	for name, apps := range map[string][]string{"c1": {"group", "one"}, "c2": {"group"}, "c3": nil} {
		for _, app := range []string{"group", "one"} {
			made := named1(all[name], "ConfigMap", app)
			require.Equal(t, slices.Contains(apps, app), made != nil, "%s in %s", app, name)
			if made != nil {
				require.Equal(t, map[string]any{"cluster": name}, made.Object["data"])
			}
		}
		for _, step := range []string{"group-apps", "apps"} {
			require.Contains(t, named1(all[name], "Kustomization", step).Object["spec"], "decryption", "an encrypted Secret may be among them")
		}
	}
	tree, err := NewPlatform(platform)
	require.NoError(t, err)
	outcomes, err := Write(dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, Unchanged, result(outcomes, "apps/clustergroups/dev/kustomization.yaml"))
}

func TestEachGroupHasASecretStoreOfItsOwnAndTeamsAreKeptToTheirKeys(t *testing.T) {
	platform := irisClusters()
	vault := func(name string) map[string]any {
		return map[string]any{"azurekv": map[string]any{"vaultUrl": "https://" + name + ".vault.azure.net"}}
	}
	platform.SecretStores = map[string]map[string]any{"dev": vault("dev-environ"), "test": vault("test-env")}
	all := appliedIn(t, light(t, example{platform: &platform}.write(t)))
	for name, want := range map[string]map[string]any{"eks.eks-warroyo2.us-west-2.iris-dev": vault("dev-environ"),
		"aks.00439d3b.tmc-clusters.iris-test": vault("test-env"), "eks.eks-warroyo2.us-west-2.infra-ops": nil} {
		store := named1(all[name], "ClusterSecretStore", "cluster-wide-store")
		require.Equal(t, want != nil, store != nil, name)
		if want != nil {
			require.Equal(t, want, store.Object["spec"].(map[string]any)["provider"])
		}
		for _, o := range all[name] {
			if o.GroupVersionKind().Group != constraintGroup {
				continue
			}
			action, _, _ := unstructured.NestedString(o.Object, "spec", "enforcementAction")
			require.Equal(t, o.GetKind() == "ExternalSecretTenantKeys", action == "deny", o.GetKind())
		}
	}
}

func TestRefusesSecretStoresThatNoClusterWouldHave(t *testing.T) {
	store := func(provider map[string]any) map[string]map[string]any {
		return map[string]map[string]any{"dev": provider}
	}
	sound := map[string]any{"azurekv": map[string]any{"vaultUrl": "https://x.vault.azure.net"}}
	for name, c := range map[string]struct {
		platform Platform
		message  string
	}{
		"another layout": {Platform{SecretStores: store(sound)}, "secretStores means nothing in the layout flux"},
		"no such group": {Platform{Layout: LayoutGroups, SecretStores: map[string]map[string]any{"prod": sound}},
			"there is no group prod; add prod to groups"},
		"no provider": {Platform{Layout: LayoutGroups, SecretStores: store(map[string]any{})}, "give one provider with its fields"},
		"two providers": {
			Platform{Layout: LayoutGroups, SecretStores: store(map[string]any{"azurekv": map[string]any{"a": "b"}, "vault": map[string]any{"a": "b"}})},
			"give one provider with its fields"},
		"an empty provider": {Platform{Layout: LayoutGroups, SecretStores: store(map[string]any{"azurekv": map[string]any{}})},
			"give one provider with its fields"},
		"keys without a limit": {Platform{Layout: LayoutGroups, Constraints: []string{imagesSet}, SecretStores: store(sound)},
			"without this set, every team could read the secrets of all"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlatform(c.platform)
			require.ErrorContains(t, err, c.message)
		})
	}
}

// Two lists decide about the platform's own namespaces: one about images, one about all else.
func TestTheSettingsSayWhichRulesLeaveOutANamespace(t *testing.T) {
	platform := Platform{Layout: LayoutGroups, ExemptNamespaces: []string{"kube-system"}, InfrastructureNamespaces: []string{"kube-system", "external-dns"}}
	dir := light(t, example{platform: &platform}.write(t))
	rules := 0
	for _, o := range loaded(t, dir).build("infrastructure/policies").objects {
		excluded, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "match", "excludedNamespaces")
		switch o.GetName() {
		case "verified-images":
			require.Equal(t, []string{"kube-system"}, excluded)
		case "allowed-users-and-groups", "apparmor-profile", "container-allowed-ports", "external-secret-tenant-keys", "no-host-path-volumes",
			"no-privileged-containers", "seccomp-profile":
			require.Equal(t, []string{"kube-system", "external-dns"}, excluded, o.GetName())
			rules++
		default:
			require.NotContains(t, excluded, "external-dns", o.GetName())
		}
	}
	require.Equal(t, 7, rules)
	complete, err := Platform{Layout: LayoutGroups}.Complete()
	require.NoError(t, err)
	require.Contains(t, complete.InfrastructureNamespaces, externalSecretsNamespace)
	require.Equal(t, complete.ExemptNamespaces, complete.InfrastructureNamespaces)
}

// A chart that an object elsewhere installs shows none of its images, only its namespace.
func TestANamespaceOfThePlatformThatNoRuleCouldFillIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		exempt []string
		labels string
		allows string // the namespace in which a rule allows something
		found  bool
	}{
		"neither":         {found: true},
		"exempt":          {exempt: []string{"ingress"}},
		"allowed by rule": {allows: "ingress"},
		"a team's":        {labels: ", labels: {" + v1beta1.LabelTenant + ": iris}"},
	} {
		t.Run(name, func(t *testing.T) {
			byDefault, err := Platform{Layout: LayoutGroups}.Complete()
			require.NoError(t, err)
			platform := Platform{Layout: LayoutGroups, Constraints: []string{imagesSet}, Enforcement: "deny",
				ExemptNamespaces: append(c.exempt, byDefault.ExemptNamespaces...)}
			dir := light(t, example{platform: &platform}.write(t))
			put1(t, dir, "apps/clustergroups/dev/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ingress"+c.labels+"}\n")
			rewrite(t, dir, "apps/clustergroups/dev/kustomization.yaml", "resources: []", "resources: [namespace.yaml]")
			report, err := Check(t.Context(), dir, CheckOptions{MayAllow: func(context.Context, string) (func(namespace, image string) bool, error) {
				return func(namespace, image string) bool { return namespace == "" || namespace == c.allows }, nil // some image somewhere, and what the case says
			}})
			require.NoError(t, err)
			if !c.found {
				require.Empty(t, report.Findings)
				return
			}
			require.Len(t, report.Findings, 1)
			require.Equal(t, "infrastructure/policies/images/verified-images.yaml", report.Findings[0].File)
			require.Contains(t, report.Findings[0].Message, "denies every image of Namespace ingress, because no rule could allow it in namespace ingress: put a rule "+
				"for it into infrastructure/policies/own, or add the namespace to exemptNamespaces")
		})
	}
}
