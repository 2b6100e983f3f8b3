package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// arc adds the layout of soft multi-tenancy with Arc: everything of a cluster in one
// folder, and applications that tenants share in base-deployments.
func (p Platform) arc(t *Tree) {
	for _, cluster := range p.Clusters {
		folder := path.Join("clusters", cluster)
		entry(t, path.Join(folder, "platform", "flux-system"))
		t.add(path.Join(folder, "platform", "infrastructure.yaml"), document(infrastructureComment, objectsOf(p.steps()...)...))
		t.add(path.Join(folder, "platform", "tenants.yaml"), document("Tenants wait for what restricts them.",
			p.tenantsStep("./"+folder, nil).object()))
		t.seed(path.Join(folder, "kustomization.yaml"), tenantList())
		t.Files = append(t.Files, File{Path: path.Join("arc", cluster+"-policy-assignment.json"), Text: assignment(cluster), Seed: true, Bare: true})
	}
	t.add("arc/README.md", strings.ReplaceAll(arcReadme, "CLUSTER", p.Clusters[0]))
	t.Files = append(t.Files, File{Path: "scripts/scaffold-tenant.sh", Executable: true, Text: arcScript})
}

const arcScript = `#!/bin/sh
# Adds a tenant: scripts/scaffold-tenant.sh NAME --place CLUSTER --app APP …
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
exec landwaiter platform scaffold "$root" "$@"
`

const arcReadme = `# What makes each cluster watch its folder

Every cluster watches clusters/NAME/platform, where NAME is the cluster's or that of a group
of clusters. Choose one of these for a cluster:

1. Bootstrap it yourself:

       flux bootstrap git --path=clusters/CLUSTER/platform …

2. With Azure Arc or AKS, put it into a resource group that has the policy assignment of the
   folder. The assignment gives every cluster of the group the same Flux configuration, also
   those that join later:

       az deployment group create --resource-group CLUSTER --template-file arc/CLUSTER-policy-assignment.json \
         --parameters repositoryUrl=https://github.com/example/arc

   The assignment uses Azure's own policy for repositories without a login. Clusters that were
   there before need a remediation task. The extension microsoft.flux must be installed and lock
   Flux down (multiTenancy.enforce, its default), and the accounts kustomize-controller and
   helm-controller must be in flux-system and cluster admins: the platform's own steps name
   them. The folder flux-system of the cluster stays empty then, because Azure keeps Flux.

Do not do both for one cluster. The files *-policy-assignment.json are yours to edit.
`

// Azure's built-in policy that gives a cluster a Flux configuration from a repository without a
// login, and the role that it needs to do so.
const (
	fluxPolicy        = "/providers/Microsoft.Authorization/policyDefinitions/83ea2fd1-9eaf-2f6d-f672-cd7b2ac798f6"
	contributorRole   = "b24988ac-6180-42a0-ab88-20f7382dd24c"
	assignmentVersion = "2022-06-01"
)

// assignment is the template that assigns the clusters of a resource group to a folder of the tree.
// The configuration is named as flux bootstrap names it, because steps refer to its source.
func assignment(cluster string) string {
	told := object{"configurationName": platformSource, "configurationNamespace": fluxNamespace, "configurationScope": "cluster",
		"repositoryUrl": "[parameters('repositoryUrl')]", "repositoryRefBranch": "[parameters('branch')]",
		"kustomizationName": "platform", "kustomizationPath": "./" + path.Join("clusters", cluster, "platform"), "kustomizationPrune": true}
	values := object{}
	for name, value := range told {
		values[name] = object{"value": value}
	}
	id := fmt.Sprintf("resourceId('Microsoft.Authorization/policyAssignments', '%s')", cluster)
	template := object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0",
		"parameters": object{
			"repositoryUrl": object{"type": "string", "metadata": object{"description": "URL of this repository, without a login"}},
			"branch":        object{"type": "string", "defaultValue": "main"},
		},
		"resources": []object{
			{"type": "Microsoft.Authorization/policyAssignments", "apiVersion": assignmentVersion, "name": cluster,
				"location": "[resourceGroup().location]", "identity": object{"type": "SystemAssigned"},
				"properties": object{"displayName": "Clusters of this group watch clusters/" + cluster, "policyDefinitionId": fluxPolicy, "parameters": values}},
			{"type": "Microsoft.Authorization/roleAssignments", "apiVersion": "2022-04-01", "name": fmt.Sprintf("[guid(resourceGroup().id, '%s')]", cluster),
				"dependsOn": []string{"[" + id + "]"},
				"properties": object{"roleDefinitionId": fmt.Sprintf("[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '%s')]", contributorRole),
					"principalType": "ServicePrincipal",
					"principalId":   fmt.Sprintf("[reference(%s, '%s', 'full').identity.principalId]", id, assignmentVersion)}},
		},
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(template); err != nil {
		panic(fmt.Sprintf("scaffold: encode a policy assignment: %v", err))
	}
	return text.String()
}
