package scaffold

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// arm is what a test reads of a template.
type arm struct {
	Parameters map[string]struct {
		DefaultValue  any
		MinLength     int
		AllowedValues []string
	}
	Variables struct {
		Policies map[string]string
		Watch    map[string]struct{ Value any }
		Logins   map[string]map[string]struct{ Value any }
	}
	Resources []struct {
		Type, Name string
		Properties struct{ PolicyDefinitionID, Parameters string }
	}
}

// What Azure is told leads to a folder of the tree, whose steps find the source under its name.
func TestTheAssignmentOfAClusterLeadsToItsFolder(t *testing.T) {
	p := Platform{Layout: LayoutArc, Clusters: []string{"cluster1", "stores.example"}, Constraints: []string{imagesSet}}
	dir := example{platform: &p}.write(t)
	for _, cluster := range p.Clusters {
		var template arm
		require.NoError(t, json.Unmarshal([]byte(content(t, dir, "arc/"+cluster+"-policy-assignment.json")), &template))
		require.Equal(t, "Microsoft.Authorization/policyAssignments", template.Resources[0].Type)
		require.Equal(t, cluster, template.Resources[0].Name)
		told := template.Variables.Watch
		steps := content(t, dir, fmt.Sprint(told["kustomizationPath"].Value, "/infrastructure.yaml"))
		require.Contains(t, steps, fmt.Sprintf("sourceRef:\n    kind: GitRepository\n    name: %s\n", told["configurationName"].Value))
		require.Contains(t, steps, fmt.Sprintf("namespace: %s\n", told["configurationNamespace"].Value))
		require.Equal(t, "[parameters('branch')]", told["repositoryRefBranch"].Value)
		require.Equal(t, "cluster", told["configurationScope"].Value)
	}
}

// For each login, the assignment uses the policy of Azure for it, with the parameters that this policy has.
func TestTheAssignmentAlsoFetchesPrivateRepositories(t *testing.T) {
	p := Platform{Layout: LayoutArc, Clusters: []string{"cluster1"}, Constraints: []string{imagesSet}}
	dir := example{platform: &p}.write(t)
	var template arm
	require.NoError(t, json.Unmarshal([]byte(content(t, dir, "arc/cluster1-policy-assignment.json")), &template))
	var given struct {
		Parameters map[string]struct{ Value string }
	}
	require.NoError(t, json.Unmarshal([]byte(content(t, dir, "arc/parameters.json")), &given))
	require.ElementsMatch(t, slices.Collect(maps.Keys(template.Parameters)), slices.Collect(maps.Keys(given.Parameters)),
		"Azure refuses one that the template does not have")
	require.Empty(t, given.Parameters["repositoryUrl"].Value)
	require.Nil(t, template.Parameters["repositoryUrl"].DefaultValue, "nobody knows it but the platform")
	require.Equal(t, 1, template.Parameters["repositoryUrl"].MinLength)
	require.Equal(t, "main", template.Parameters["branch"].DefaultValue)

	assigned := template.Resources[0].Properties
	require.Equal(t, "[variables('policies')[parameters('login')]]", assigned.PolicyDefinitionID)
	require.Equal(t, "[union(variables('watch'), variables('logins')[parameters('login')])]", assigned.Parameters)
	require.Equal(t, []string{"none", "ssh", "https"}, template.Parameters["login"].AllowedValues)
	parameter := regexp.MustCompile(`^\[parameters\('(\w+)'\)\]$`)
	for login, want := range map[string]struct {
		policy   string
		own      []string // parameters that only this policy has
		fromText string   // the one that names the secret
	}{
		"none": {"83ea2fd1-9eaf-2f6d-f672-cd7b2ac798f6", nil, ""},
		"ssh":  {"9e980dca-f3e1-8da3-6717-ad37b1ca6b27", []string{"keyVaultName", "keyVaultSecretName", "repositorySshKnownHosts"}, "keyVaultSecretName"},
		"https": {"bf1a31be-3b79-5ba8-c9e0-9a8c9ad9f749", []string{"keyVaultName", "httpsKeyKeyVaultSecretName", "repositoryHttpsUser"},
			"httpsKeyKeyVaultSecretName"},
	} {
		require.Equal(t, "/providers/Microsoft.Authorization/policyDefinitions/"+want.policy, template.Variables.Policies[login])
		own := template.Variables.Logins[login]
		require.ElementsMatch(t, want.own, slices.Collect(maps.Keys(own)), login)
		for name, value := range own {
			match := parameter.FindStringSubmatch(fmt.Sprint(value.Value))
			require.NotNil(t, match, name)
			require.Contains(t, template.Parameters, match[1], name)
		}
		if want.fromText != "" {
			require.Equal(t, "[parameters('secretName')]", own[want.fromText].Value)
			require.Equal(t, "[parameters('keyVault')]", own["keyVaultName"].Value)
		}
	}
}

func TestTheWorkflowDeploysTheAssignmentOfEachCluster(t *testing.T) {
	p := Platform{Layout: LayoutArc, Clusters: []string{"cluster1", "stores.example"}, Constraints: []string{imagesSet}}
	dir := example{platform: &p}.write(t)
	r := newRunner(t, dir, map[string]string{"az": ""})
	output, err := r.run(t, "assign.yaml")
	require.NoError(t, err, output)
	want := ""
	for _, cluster := range p.Clusters {
		want += fmt.Sprintf("az deployment group create --name flux-%s --resource-group %[1]s --template-file arc/%[1]s-policy-assignment.json --parameters "+
			"@arc/parameters.json\n", cluster)
	}
	require.Equal(t, want, r.calls(t))

	// One group that fails does not keep the others from theirs.
	failing := newRunner(t, dir, map[string]string{"az": "case $* in *flux-cluster1*) exit 1;; esac\n"})
	output, err = failing.run(t, "assign.yaml")
	require.Error(t, err)
	require.Contains(t, output, "::error::not deployed: cluster1\n")
	require.Equal(t, want, failing.calls(t))
}

// A cluster that left the tree leaves its assignment, which names a folder that is gone.
func TestTheAssignmentOfAClusterThatIsGoneIsNamedAndNotDeployed(t *testing.T) {
	p := Platform{Layout: LayoutArc, Clusters: []string{"cluster1", "cluster2"}, Constraints: []string{imagesSet}}
	dir := filepath.Join(folder(t), "arc")
	require.NoError(t, os.CopyFS(dir, os.DirFS(example{platform: &p}.write(t))))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "clusters/cluster1")))
	p.Clusters = []string{"cluster2"}
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	outcomes, err := Write(dir, tree, WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, Stale, result(outcomes, "arc/cluster1-policy-assignment.json"))
	require.Equal(t, Unchanged, result(outcomes, "arc/cluster2-policy-assignment.json"))

	r := newRunner(t, dir, map[string]string{"az": ""})
	output, err := r.run(t, "assign.yaml")
	require.NoError(t, err, output)
	require.Contains(t, output, "::warning::arc/cluster1-policy-assignment.json: there is no folder clusters/cluster1: delete the file, and its "+
		"assignment in Azure\n")
	require.NotContains(t, r.calls(t), "cluster1")
	require.Contains(t, r.calls(t), "flux-cluster2")
}
