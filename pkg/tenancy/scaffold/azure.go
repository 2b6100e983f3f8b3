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
		p.entry(t, path.Join(folder, "platform", "flux-system"))
		t.add(path.Join(folder, "platform", "infrastructure.yaml"), document(infrastructureComment, objectsOf(p.steps()...)...))
		t.add(path.Join(folder, "platform", "tenants.yaml"), document("Tenants wait for what restricts them.",
			p.tenantsStep("./"+folder, nil).object()))
		t.seed(path.Join(folder, "kustomization.yaml"), tenantList())
		t.Files = append(t.Files,
			File{Path: path.Join("arc", cluster+"-policy-assignment.json"), Text: assignment(cluster), Seed: true, Bare: true})
	}
	t.Bare = append(t.Bare, "arc/*-policy-assignment.json")
	t.Files = append(t.Files, File{Path: "arc/parameters.json", Text: arcParameters, Seed: true, Bare: true})
	t.add(".github/workflows/assign.yaml", assignWorkflow)
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

2. With Azure Arc or AKS, put it into a resource group of the name CLUSTER, and assign Azure's
   policy to the group. Every cluster of the group gets the same Flux configuration, also those
   that join later. Write the repository's URL into parameters.json, then deploy the assignment:

       az deployment group create --resource-group CLUSTER --parameters @arc/parameters.json \
         --template-file arc/CLUSTER-policy-assignment.json

   The workflow .github/workflows/assign.yaml deploys all assignments on each change. It runs once
   the repository variables AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_SUBSCRIPTION_ID name an
   identity with a federated credential for this repository's main branch and the role Owner in
   the resource groups. If you delete a file, also delete its assignment in Azure.

   Clusters that were there before need a remediation task. The extension microsoft.flux must be
   installed and lock Flux down (multiTenancy.enforce, its default), and the accounts
   kustomize-controller and helm-controller must be in flux-system and cluster admins: the
   platform's own steps name them. The folder flux-system of the cluster stays empty then,
   because Azure keeps Flux.

Do not do both for one cluster. The JSON files are yours to edit.

## A private repository

Store the login in a Key Vault, encoded with base64: a private key without a passphrase, whose
public key is a deploy key of the repository, or a token that can only read the repository:

    az keyvault update --name VAULT --enabled-for-template-deployment true
    az keyvault secret set --vault-name VAULT --name flux --value "$(base64 --wrap=0 < FILE)"

The assignments have the role Contributor in their own resource groups. If the vault is in
another group, give them this role for the vault. In parameters.json, set:

| parameter | SSH key | token |
|---|---|---|
| repositoryUrl | ssh://git@github.com/example/arc | https://github.com/example/arc |
| login | ssh | https |
| keyVault | the vault's resource ID | the vault's resource ID |
| secretName | flux | flux |
| knownHosts | what ssh-keyscan prints, encoded with base64 | (empty) |
| httpsUser | (empty) | the token's user |
`

// arcParameters are those of every assignment. Without a URL, Azure refuses to deploy one.
const arcParameters = `{
  "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#",
  "contentVersion": "1.0.0.0",
  "parameters": {
    "repositoryUrl": {"value": ""},
    "branch": {"value": "main"},
    "login": {"value": "none"},
    "keyVault": {"value": ""},
    "secretName": {"value": ""},
    "knownHosts": {"value": ""},
    "httpsUser": {"value": ""}
  }
}
`

// assignWorkflow deploys the folder arc. Without an identity in Azure it is skipped.
const assignWorkflow = `name: assign
on:
  push: {branches: [main], paths: ["arc/*.json"]}
  workflow_dispatch: {}
permissions: {contents: read, id-token: write}
jobs:
  assign:
    if: vars.AZURE_CLIENT_ID != '' && github.ref == 'refs/heads/main'
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v4
      with: {persist-credentials: false}
    - uses: azure/login@v2
      with:
        client-id: ${{ vars.AZURE_CLIENT_ID }}
        tenant-id: ${{ vars.AZURE_TENANT_ID }}
        subscription-id: ${{ vars.AZURE_SUBSCRIPTION_ID }}
    - name: Deploy the assignments
      shell: bash
      run: |
        failed=
        for file in arc/*-policy-assignment.json; do
          group=$(basename "$file" -policy-assignment.json)
          if [ ! -d "clusters/$group" ]; then
            echo "::warning::$file: there is no folder clusters/$group: delete the file, and its assignment in Azure"
            continue
          fi
          az deployment group create --name "flux-$group" --resource-group "$group" --template-file "$file" --parameters @arc/parameters.json || failed="$failed $group"
        done
        if [ -n "$failed" ]; then
          echo "::error::not deployed:$failed"
          exit 1
        fi
`

// Azure's built-in policies that give a cluster a Flux configuration: from a public repository, and with a
// private key or a token in a Key Vault. They need contributorRole to do so.
const (
	fluxPolicy        = "/providers/Microsoft.Authorization/policyDefinitions/"
	fluxPolicyPublic  = fluxPolicy + "83ea2fd1-9eaf-2f6d-f672-cd7b2ac798f6"
	fluxPolicySSH     = fluxPolicy + "9e980dca-f3e1-8da3-6717-ad37b1ca6b27"
	fluxPolicyHTTPS   = fluxPolicy + "bf1a31be-3b79-5ba8-c9e0-9a8c9ad9f749"
	contributorRole   = "b24988ac-6180-42a0-ab88-20f7382dd24c"
	assignmentVersion = "2022-06-01"
)

// values gives each parameter of a policy its value.
func values(told object) object {
	given := object{}
	for name, value := range told {
		given[name] = object{"value": value}
	}
	return given
}

// assignment is the template that assigns the clusters of a resource group to a folder of the tree.
// The configuration is named as flux bootstrap names it, because steps refer to its source.
func assignment(cluster string) string {
	vault := func(told object) object {
		told["keyVaultName"] = "[parameters('keyVault')]"
		return values(told)
	}
	text := func(about string) object {
		return object{"type": "string", "defaultValue": "", "metadata": object{"description": about}}
	}
	id := fmt.Sprintf("resourceId('Microsoft.Authorization/policyAssignments', '%s')", cluster)
	template := object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0",
		"parameters": object{
			"repositoryUrl": object{"type": "string", "minLength": 1, "metadata": object{"description": "URL of this repository"}},
			"branch":        object{"type": "string", "defaultValue": "main"},
			"login":         object{"type": "string", "defaultValue": "none", "allowedValues": []string{"none", "ssh", "https"}},
			"keyVault":      text("Resource ID of the Key Vault that has the login"),
			"secretName":    text("Name of the vault's secret: a private key or a token, encoded with base64"),
			"knownHosts":    text("Public keys of the Git host, encoded with base64"),
			"httpsUser":     text("User name of the token"),
		},
		"variables": object{
			"policies": object{"none": fluxPolicyPublic, "ssh": fluxPolicySSH, "https": fluxPolicyHTTPS},
			"watch": values(object{"configurationName": platformSource, "configurationNamespace": fluxNamespace, "configurationScope": "cluster",
				"repositoryUrl": "[parameters('repositoryUrl')]", "repositoryRefBranch": "[parameters('branch')]",
				"kustomizationName": "platform", "kustomizationPath": "./" + path.Join("clusters", cluster, "platform"), "kustomizationPrune": true}),
			"logins": object{
				"none":  object{},
				"ssh":   vault(object{"keyVaultSecretName": "[parameters('secretName')]", "repositorySshKnownHosts": "[parameters('knownHosts')]"}),
				"https": vault(object{"httpsKeyKeyVaultSecretName": "[parameters('secretName')]", "repositoryHttpsUser": "[parameters('httpsUser')]"}),
			},
		},
		"resources": []object{
			{"type": "Microsoft.Authorization/policyAssignments", "apiVersion": assignmentVersion, "name": cluster,
				"location": "[resourceGroup().location]", "identity": object{"type": "SystemAssigned"},
				"properties": object{"displayName": "Clusters of this group watch clusters/" + cluster,
					"policyDefinitionId": "[variables('policies')[parameters('login')]]",
					"parameters":         "[union(variables('watch'), variables('logins')[parameters('login')])]"}},
			{"type": "Microsoft.Authorization/roleAssignments", "apiVersion": "2022-04-01",
				"name":      fmt.Sprintf("[guid(resourceGroup().id, '%s')]", cluster),
				"dependsOn": []string{"[" + id + "]"},
				"properties": object{"roleDefinitionId": fmt.Sprintf("[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '%s')]",
					contributorRole),
					"principalType": "ServicePrincipal",
					"principalId":   fmt.Sprintf("[reference(%s, '%s', 'full').identity.principalId]", id, assignmentVersion)}},
		},
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(template); err != nil {
		panic(fmt.Sprintf("scaffold: encode a policy assignment: %v", err))
	}
	return encoded.String()
}
