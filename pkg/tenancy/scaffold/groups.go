package scaffold

import (
	"fmt"
	"maps"
	"path"
	"slices"
)

const (
	// externalSecretsNamespace is a namespace of the platform that only the layout groups has.
	externalSecretsNamespace = "external-secrets"
	// storeName is the name of the store that teams share, in each group.
	storeName = "cluster-wide-store"
	// secretsSet has the constraint that limits teams to their own keys of shared stores.
	secretsSet = "secrets"
	// keysKind is the kind of that constraint.
	keysKind = "ExternalSecretTenantKeys"
	// Folders of applications of the platform, by group and by cluster.
	groupApps   = "apps/clustergroups"
	clusterApps = "apps/clusters"
	// baseApps has the shared parts of those.
	baseApps    = "apps/base"
	appsComment = "landwaiter never changes this folder. Flux\nreplaces ${cluster_name}."
)

// appSteps apply the store that teams share, and the platform's applications: those of the group,
// then those of the cluster. As with tenants, nothing of them runs before its restrictions.
func (p Platform) appSteps(group, name string) []step {
	more := substitution()
	maps.Copy(more, p.decryption())
	steps := []step{
		{"group-apps", "./" + path.Join(groupApps, group), append([]string{"external-secrets"}, p.beforeTenants()...), more},
		{"apps", "./" + path.Join(clusterApps, name), []string{"group-apps"}, more},
	}
	if p.SecretStores[group] != nil {
		steps = append(
			[]step{{"secret-store", "./" + path.Join(storesFolder, group), append([]string{"external-secrets"}, p.beforeTenants()...), nil}},
			steps...)
	}
	return steps
}

// storesFolder has a folder for the store of each group.
const storesFolder = "infrastructure/secret-stores"

// secretStores adds the stores of the groups.
func (p Platform) secretStores(t *Tree) {
	for _, group := range slices.Sorted(maps.Keys(p.SecretStores)) {
		folder := path.Join(storesFolder, group)
		t.add(path.Join(folder, "store.yaml"),
			document("All teams of the group's clusters share this store; each may use only the keys that begin with its\nname. The provider is "+
				"secretStores in "+SettingsFile+".", object{
				"apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore", "metadata": named("", storeName),
				"spec": object{"provider": p.SecretStores[group]}}))
		t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{"store.yaml"}, nil))
	}
}

// keysDenied enforces the rule about keys of shared stores from the start: while it only
// reports, every team can read the secrets of all.
func keysDenied() object {
	return object{"target": object{"group": constraintGroup, "kind": keysKind},
		"patch": encode([]object{{"op": "add", "path": "/spec/enforcementAction", "value": "deny"}})}
}

// checkSecretStores refuses stores that no cluster would have, or that teams would share without
// the rule about their keys.
func (p Platform) checkSecretStores() error {
	for group, provider := range p.SecretStores {
		content, _ := firstValue(provider).(map[string]any)
		switch {
		case p.Layout != LayoutGroups:
			return fmt.Errorf("secretStores means nothing in the layout %s", p.Layout)
		case !slices.Contains(p.Groups, group):
			return fmt.Errorf("secretStores: %s: there is no group %s; add %s to groups", group, group, group)
		case len(provider) != 1 || len(content) == 0:
			return fmt.Errorf("secretStores: %s: give one provider with its fields, as spec.provider of external-secrets has them, such as "+
				"{azurekv: {vaultUrl: …}}", group)
		case !slices.Contains(p.Constraints, secretsSet):
			return fmt.Errorf("secretStores: %s: add %s to constraints: without this set, every team could read the secrets of all",
				group, secretsSet)
		}
	}
	return nil
}

func firstValue(values map[string]any) any {
	for _, value := range values {
		return value
	}
	return nil
}

const groupsReadme = `# Bootstrap a cluster

Every cluster of a group uses the same path, and reads its name from a ConfigMap:

    kubectl create namespace flux-system
    kubectl --namespace flux-system create configmap cluster-vars --from-literal=cluster_name=iris-dev
    flux bootstrap git --path=clustergroups/dev …

Replace iris-dev and dev by the cluster and its group.

## Credentials of the shared secret store

A store of secretStores that names a Secret needs it in the namespace external-secrets of each
cluster, before or after bootstrap:

    kubectl create namespace external-secrets
    kubectl --namespace external-secrets create secret generic azure-secret-sp \
      --from-literal=ClientID=… --from-file=ClientSecret=secret.txt

Or keep it in Git, encrypted: with sopsAge, Flux decrypts what is in apps/clustergroups/GROUP.
The Flux Kustomization secret-store is ready once the store has its credentials. A workload
identity needs no Secret.
`
