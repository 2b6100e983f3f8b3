package scaffold

import (
	"maps"
	"path"
)

// step is one Flux Kustomization of the platform.
type step struct {
	name, path string
	after      []string
	more       object
}

// steps are the order in which a cluster starts: CRDs, controllers, templates, constraints,
// guardrails. Flux starts each step once the previous ones are ready.
func (p Platform) steps() []step {
	steps := []step{
		// Without prune: deleting a CRD deletes all resources of its kind.
		{"crds", "./infrastructure/crds", nil, object{"prune": false}},
		{"gatekeeper", "./infrastructure/gatekeeper", []string{"crds"}, nil},
		{"landwaiter", "./infrastructure/landwaiter", []string{"crds", "gatekeeper"}, nil},
		{"templates", "./infrastructure/templates", []string{"gatekeeper", "landwaiter"}, object{"healthCheckExprs": []object{{
			"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate",
			"current": "has(status.created) && status.created",
		}}}},
		{"policies", "./infrastructure/policies", []string{"templates"}, nil},
	}
	if !p.Operator {
		steps = append(steps, step{"guardrails", "./infrastructure/guardrails", []string{"crds", "policies"}, nil})
	}
	return steps
}

// beforeTenants are the steps before tenants: nothing of theirs runs before its restrictions.
func (p Platform) beforeTenants() []string {
	if p.Operator {
		return []string{"landwaiter", "policies"}
	}
	return []string{"policies", "guardrails"}
}

// tenantsStep applies the tenants of a cluster.
func (p Platform) tenantsStep(folder string, more object) step {
	// Without wait: a team's broken repository must not hold up the other teams.
	s := step{"tenants", folder, p.beforeTenants(), object{"wait": false}}
	maps.Copy(s.more, p.decryption())
	maps.Copy(s.more, more)
	return s
}

// decryption lets Flux decrypt a step's objects, if the tree names recipients.
func (p Platform) decryption() object {
	sops := p.sops()
	if sops == (sopsKey{}) {
		return nil
	}
	decryption := sops.decryption()
	if p.decryptsByAccount() {
		decryption["serviceAccountName"] = "kustomize-controller"
	}
	return object{"decryption": decryption}
}

// object returns the Flux Kustomization of a step.
func (s step) object() object {
	spec := object{
		"interval": "10m", "retryInterval": "1m", "timeout": "5m", "path": s.path, "prune": true, "wait": true,
		"sourceRef": object{"kind": "GitRepository", "name": platformSource},
		// With the lockdown, Flux uses the account default if none is named.
		"serviceAccountName": "kustomize-controller",
	}
	if len(s.after) > 0 {
		var after []object
		for _, name := range s.after {
			after = append(after, object{"name": name})
		}
		spec["dependsOn"] = after
	}
	maps.Copy(spec, s.more)
	return object{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": named(fluxNamespace, s.name), "spec": spec}
}

func objectsOf(steps ...step) []object {
	var objects []object
	for _, s := range steps {
		objects = append(objects, s.object())
	}
	return objects
}

const infrastructureComment = "CRDs, controllers, templates, constraints, guardrails: each waits for those before it."

// entry adds the folder for flux bootstrap, with the lockdown over its files. If the Flux Operator installs Flux,
// the folder keeps its content.
func (p Platform) entry(t *Tree, folder string) {
	if names, ok := p.instances[folder]; ok {
		t.seed(path.Join(folder, "kustomization.yaml"), kustomization("", names, nil))
		return
	}
	t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{"gotk-components.yaml", "gotk-sync.yaml"},
		object{"components": []string{relative(folder, "components/flux-lockdown")}}))
	for _, name := range []string{"gotk-components.yaml", "gotk-sync.yaml"} {
		t.seed(path.Join(folder, name), "# flux bootstrap replaces this file.\n")
	}
}

// relative returns the path from one folder of the tree to another.
func relative(from, to string) string {
	up := ""
	for from = path.Clean(from); from != "." && !within(to, from); from = path.Dir(from) {
		up += "../"
	}
	if from == "." {
		return up + to
	}
	return up + to[len(from)+1:]
}

// within reports whether a path is below a folder.
func within(name, folder string) bool {
	return len(name) > len(folder) && name[:len(folder)] == folder && name[len(folder)] == '/'
}

// layout adds the folders of the clusters.
func (p Platform) layout(t *Tree) {
	switch p.Layout {
	case LayoutFlux:
		p.flux(t)
	case LayoutGroups:
		p.groups(t)
	case LayoutArc:
		p.arc(t)
	case LayoutDemo: // it has none
	}
}

// flux adds the layout of flux2-multi-tenancy: a folder for each environment, which flux
// bootstrap --path names.
func (p Platform) flux(t *Tree) {
	for _, environment := range p.Environments {
		folder := path.Join("clusters", environment)
		p.entry(t, path.Join(folder, "flux-system"))
		t.add(path.Join(folder, "infrastructure.yaml"), document(infrastructureComment, objectsOf(p.steps()...)...))
		t.add(path.Join(folder, "tenants.yaml"), document("Tenants wait for what restricts them.",
			p.tenantsStep("./tenants/"+environment, nil).object()))
		t.seed(path.Join("tenants", environment, "kustomization.yaml"), tenantList())
	}
}

// tenantList is the list that `platform scaffold` adds to.
func tenantList() string {
	return kustomization("Teams of this cluster; landwaiter platform scaffold adds to the list.", nil, nil)
}

// clusterVariables is the ConfigMap in flux-system with the name of the cluster.
const clusterVariables = "cluster-vars"

// substitution replaces ${cluster_name} in what a step applies.
func substitution() object {
	return object{"postBuild": object{"substituteFrom": []object{{"kind": "ConfigMap", "name": clusterVariables}}}}
}

// groupsFolder has a folder for each group of clusters.
const groupsFolder = "clustergroups"

// groups adds the layout of Flux with TMC. All clusters of a group share one entry, which
// leads each to its own folder.
func (p Platform) groups(t *Tree) {
	for _, group := range p.Groups {
		folder := path.Join(groupsFolder, group)
		p.entry(t, path.Join(folder, "flux-system"))
		t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{"flux-system", "group.yaml"}, nil))
		t.add(path.Join(folder, "group.yaml"),
			document("Leads each cluster of the group to its folder; bootstrap/README.md says where the name comes from.",
				step{"group", "./" + path.Join(folder, "cluster"), nil, substitution()}.object()))
		t.add(path.Join(folder, "cluster", "kustomization.yaml"), kustomization("", []string{"cluster.yaml"}, nil))
		t.add(path.Join(folder, "cluster", "cluster.yaml"),
			document("", step{"cluster", "./clusters/${cluster_name}", nil, object{"wait": false}}.object()))
		if group != GroupOps {
			t.seed(path.Join("tenants", group, "kustomization.yaml"), tenantList())
		}
		t.seed(path.Join(groupApps, group, "kustomization.yaml"),
			kustomization("Applications of all clusters of the group. "+appsComment, nil, nil))
	}
	p.secretStores(t)
	for _, cluster := range p.Clusters {
		group, name := path.Dir(cluster), path.Base(cluster)
		folder := path.Join("clusters", name)
		steps, resources := append(p.steps(), step{"external-secrets", "./infrastructure/external-secrets", nil, nil}),
			[]string{"infrastructure.yaml", "apps.yaml"}
		t.add(path.Join(folder, "infrastructure.yaml"), document(infrastructureComment, objectsOf(steps...)...))
		t.add(path.Join(folder, "apps.yaml"), document("", objectsOf(p.appSteps(group, name)...)...))
		t.seed(path.Join(clusterApps, name, "kustomization.yaml"), kustomization("Applications of this cluster. "+appsComment, nil, nil))
		if group != GroupOps {
			resources = append(resources, "tenants.yaml")
			t.add(path.Join(folder, "tenants.yaml"), document("Tenants wait for what restricts them.",
				p.tenantsStep("./tenants/"+group, substitution()).object()))
		}
		t.add(path.Join(folder, "kustomization.yaml"), kustomization("", resources, nil))
	}
	release(t, "external-secrets", externalSecretsNamespace, Chart{URL: "https://charts.external-secrets.io", Version: "0.20.x"},
		object{"pod-security.kubernetes.io/enforce": "restricted"}, object{},
		"One ClusterSecretStore serves all teams; the constraints of the set secrets keep each to its own keys.")
	t.add("bootstrap/README.md", groupsReadme)
}
