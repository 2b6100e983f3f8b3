package scaffold

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/config/crd"
	"github.com/landwaiter/landwaiter/library"
)

// Folders of the library without a template.
const (
	libraryConstraints = "constraints"
	imagesSet          = "images"
	// fluxImagesSet has rules for Flux's own images, and a constraint for Flux's namespace.
	fluxImagesSet = "flux-images"
)

// fluxImagesFile is in the library, and in the set of that name.
const fluxImagesFile = "samples/flux-images.yaml"

// imagesKind is the kind of the constraint in [imagesSet].
const imagesKind = "VerifiedImages"

// copied returns an embedded file, which cannot be missing.
func copied(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		panic(fmt.Sprintf("scaffold: read the program's own %s: %v", name, err))
	}
	return string(text)
}

// matching lists the embedded files that match a pattern.
func matching(files fs.FS, pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(fmt.Sprintf("scaffold: list the program's own %s: %v", pattern, err))
	}
	return names
}

// CRDs come first and separately from the chart, so that an upgrade changes them before any
// program that needs them.
func (p Platform) definitions(t *Tree) {
	names := matching(crd.Files, "*.yaml")
	for _, name := range names {
		t.add(path.Join("infrastructure/crds", name), copied(crd.Files, name))
	}
	t.add("infrastructure/crds/kustomization.yaml", kustomization("CRDs of landwaiter.dev.", names, nil))
}

func (p Platform) gatekeeper(t *Tree) {
	var values object
	if err := yaml.Unmarshal([]byte(copied(config.Files, "gatekeeper/values.yaml")), &values); err != nil {
		panic(fmt.Sprintf("scaffold: read the values of Gatekeeper: %v", err))
	}
	release(t, "gatekeeper", "gatekeeper-system", p.Gatekeeper, object{
		"admission.gatekeeper.sh/ignore": "no-self-managing", "pod-security.kubernetes.io/enforce": "restricted"}, values,
		"Fails closed; docs/howto/hardening.md of Landwaiter says what each value is for.")
}

func (p Platform) landwaiter(t *Tree) {
	values := object{
		"crds":       object{"install": false},
		"guardrails": object{"enabled": p.Operator},
	}
	if p.Operator {
		values["operator"] = object{"enabled": true}
	} else {
		values["guardrails"] = object{"enabled": false, "external": true} // a separate step
	}
	if len(p.ReconcilerPieces) > 0 {
		values["reconciler"] = object{"pieces": p.ReconcilerPieces}
	}
	if p.LandwaiterImage != "" {
		values["image"] = object{"repository": p.LandwaiterImage}
	}
	release(t, "landwaiter", "landwaiter-system", p.Landwaiter, object{
		"admission.gatekeeper.sh/ignore": "landwaiter", "pod-security.kubernetes.io/enforce": "restricted"}, values,
		"The CRDs are in ../crds, so that they are upgraded first.")
}

// release adds a chart with its source and its namespace.
func release(t *Tree, name, namespace string, chart Chart, labels, values object, comment string) {
	folder := path.Join("infrastructure", name)
	t.add(path.Join(folder, "namespace.yaml"), document("", object{
		"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace, "labels": labels}}))
	source, from := chartSource(chart, name, fluxNamespace, name)
	t.add(path.Join(folder, "source.yaml"), document("", source))
	spec := object{
		"interval": "10m", "releaseName": name, "targetNamespace": namespace, "storageNamespace": namespace,
		// Flux then uses the permissions of its own controller, as without an account.
		"serviceAccountName": "helm-controller",
		"install":            object{"crds": "CreateReplace", "remediation": object{"retries": 3}},
		"upgrade":            object{"crds": "CreateReplace", "remediation": object{"retries": 3}},
		"values":             values,
	}
	maps.Copy(spec, from)
	t.add(path.Join(folder, "release.yaml"), document(comment, object{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": named(fluxNamespace, name), "spec": spec}))
	t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{"namespace.yaml", "source.yaml", "release.yaml"},
		object{"patches": ownValues(t, folder, "", named(fluxNamespace, name), object{})}))
}

// valuesFile has the values of a chart that people choose.
const valuesFile = "values-own.yaml"

// ownValues adds the file for people's values, which are merged over a release's values, and
// returns the patch that does so. The file is only ever created.
func ownValues(t *Tree, folder, comment string, metadata, values object) []object {
	t.seed(path.Join(folder, valuesFile),
		document("Your values for the chart: they win over those of the release. landwaiter never changes this file."+comment, object{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": object{"values": values}}))
	return []object{{"path": valuesFile}}
}

// templates are a step of their own: the kind of a constraint exists only once Gatekeeper
// has made it from its template, and until then a dry run of the constraint fails.
func templates(t *Tree) {
	var resources []string
	for _, name := range matching(library.Files, "*/template.yaml") {
		resources = append(resources, path.Dir(name)+".yaml")
		t.add(path.Join("infrastructure/templates", path.Dir(name)+".yaml"), copied(library.Files, name))
	}
	t.add("infrastructure/templates/kustomization.yaml", kustomization("", resources, nil))
}

// constraintSets lists the sets of the library.
func constraintSets() []string {
	sets := []string{fluxImagesSet, imagesSet}
	for _, name := range matching(library.Files, libraryConstraints+"/*/kustomization.yaml") {
		sets = append(sets, path.Base(path.Dir(name)))
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// policies adds the chosen sets of constraints, and one place that sets the action of all of
// them.
func (p Platform) policies(t *Tree) {
	sets, within := slices.Clone(p.Constraints), map[string]bool{}
	for i := 0; i < len(sets); i++ {
		for _, other := range setsWithin(sets[i]) {
			within[other] = true
			if !slices.Contains(sets, other) {
				sets = append(sets, other)
			}
		}
		p.constraintSet(t, sets[i])
	}
	patches := []object{{
		"target": object{"group": constraintGroup},
		"patch":  encode([]object{{"op": "add", "path": "/spec/enforcementAction", "value": p.Enforcement}}),
	}}
	if slices.Contains(sets, fluxImagesSet) {
		patches = append(patches, p.fluxConstraint(sets))
	}
	// The guardrails protect these labels, even while Gatekeeper is down.
	patches = append(patches, withoutConstraint("ProtectedNamespaceLabels"))
	if p.GitHubOrg == "" && len(p.AllowedSources) == 0 {
		patches = append(patches, withoutConstraint("FluxAllowedSources"))
	} else {
		patches = append(patches, p.allowedSources())
	}
	patches = append(patches, object{"target": object{"group": constraintGroup, "name": aboutTeams},
		"patch": encode([]object{{"op": "add", "path": "/spec/match/excludedNamespaces", "value": p.InfrastructureNamespaces}})})
	if len(p.SecretStores) > 0 {
		patches = append(patches, keysDenied())
	}
	resources := slices.DeleteFunc(slices.Clone(p.Constraints), func(set string) bool { return within[set] })
	t.seed("infrastructure/policies/own/kustomization.yaml",
		kustomization("Put your own policies here, such as ClusterVerifiers and a ClusterVerificationPolicy. landwaiter\nnever changes "+
			"this folder.", nil, nil))
	t.add("infrastructure/policies/kustomization.yaml",
		kustomization("The first patch says how strict all constraints are: dryrun, warn or deny. Of the sets, the\nconstraints that this tree "+
			"has no use for, or no values, are left out. The rules for teams leave\nout infrastructureNamespaces of "+SettingsFile+".",
			append(resources, "own"), object{"patches": patches}))
}

const constraintGroup = "constraints.gatekeeper.sh"

// aboutTeams matches the library's constraints about teams' workloads, except images, and
// about their keys in shared secret stores. They exclude the namespaces of the platform
// itself.
const aboutTeams = "(allowed-users-and-groups|apparmor-profile|container-allowed-ports|external-secret-tenant-keys|no-host-path-volumes|" +
	"no-privileged-containers|seccomp-profile)"

func withoutConstraint(kind string) object {
	return object{"target": object{"group": constraintGroup, "kind": kind},
		"patch": encode(object{"$patch": "delete", "apiVersion": constraintGroup + "/v1beta1", "kind": kind, "metadata": object{"name": "any"}})}
}

// fluxConstraint keeps the constraint for Flux's namespace from denying while the namespace is
// exempt: pods of Flux must start while Landwaiter is down, so that it can be repaired. If the
// namespace is not exempt, the constraint of the set images covers its pods.
func (p Platform) fluxConstraint(sets []string) object {
	target := object{"group": constraintGroup, "kind": imagesKind, "name": "verified-images-flux"}
	exempt, enforcement := slices.Contains(p.ExemptNamespaces, fluxNamespace), p.Enforcement
	switch {
	case !exempt && slices.Contains(sets, imagesSet):
		return object{"target": target,
			"patch": encode(object{"$patch": "delete", "apiVersion": constraintGroup + "/v1beta1", "kind": imagesKind,
				"metadata": object{"name": "any"}})}
	case exempt && enforcement == "deny":
		enforcement = "warn"
	}
	return object{"target": target, "patch": encode([]object{{"op": "add", "path": "/spec/enforcementAction", "value": enforcement}})}
}

// allowedSources limits the sources of teams to those of one organization, and below the prefixes that
// the platform lists.
func (p Platform) allowedSources() object {
	git, oci, helm, buckets := []string{}, []string{}, []string{}, []string{}
	if p.GitHubOrg != "" {
		organisation := strings.ToLower(p.GitHubOrg)
		git = append(git, "https://github.com/"+p.GitHubOrg+"/", "ssh://git@github.com/"+p.GitHubOrg+"/")
		oci, helm = append(oci, "oci://ghcr.io/"+organisation+"/"), append(helm, "https://"+organisation+".github.io/")
	}
	for _, prefix := range p.AllowedSources {
		switch scheme, _, _ := strings.Cut(prefix, "://"); scheme {
		case "oci":
			oci = append(oci, prefix)
		case "ssh":
			git = append(git, prefix)
		default: // a Git repository, or one of charts, or a host of buckets or one bucket
			git, helm = append(git, prefix), append(helm, prefix)
			if entry := strings.TrimSuffix(strings.TrimPrefix(prefix, "https://"), "/"); strings.Count(entry, "/") < 2 {
				buckets = append(buckets, entry)
			}
		}
	}
	parameters := object{"gitPrefixes": git, "ociPrefixes": oci, "helmPrefixes": helm}
	if len(buckets) > 0 {
		parameters["bucketEndpoints"] = buckets
	}
	return object{"target": object{"group": constraintGroup, "kind": "FluxAllowedSources"},
		"patch": encode([]object{{"op": "add", "path": "/spec/parameters", "value": parameters}})}
}

// setsWithin returns the sets that a set includes.
func setsWithin(set string) (others []string) {
	if set == imagesSet || set == fluxImagesSet {
		return nil
	}
	resources, _ := resourcesOf(copied(library.Files, path.Join(libraryConstraints, set, "kustomization.yaml"))) // of this program
	for _, resource := range resources {
		if name, ok := strings.CutPrefix(resource, "../"); ok {
			others = append(others, name)
		}
	}
	return others
}

func (p Platform) constraintSet(t *Tree, set string) {
	folder, from := path.Join("infrastructure/policies", set), path.Join(libraryConstraints, set)
	if set == imagesSet {
		t.add(path.Join(folder, "verified-images.yaml"), copied(library.Files, "verified-images/samples/constraint.yaml"))
		t.add(path.Join(folder, "kustomization.yaml"),
			kustomization("Nobody verifies the images of these namespaces; exemptNamespaces in "+SettingsFile+" lists them.",
				[]string{"verified-images.yaml"}, object{"patches": []object{{"target": object{"kind": imagesKind},
					"patch": encode([]object{{"op": "add", "path": "/spec/match/excludedNamespaces", "value": p.ExemptNamespaces}})}}}))
		return
	}
	if set == fluxImagesSet {
		t.add(path.Join(folder, path.Base(fluxImagesFile)), copied(library.Files, fluxImagesFile))
		t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{path.Base(fluxImagesFile)}, nil))
		return
	}
	for _, name := range matching(library.Files, from+"/*.yaml") {
		t.add(path.Join(folder, path.Base(name)), copied(library.Files, name))
	}
}

// guardrails are in the tree unless the chart installs them for the operator, which does not
// start without its guardrails.
func (p Platform) guardrails(t *Tree) {
	if p.Operator {
		return
	}
	t.add("infrastructure/guardrails/guardrails.yaml", copied(config.Files, "guardrails/guardrails.yaml"))
	t.add("infrastructure/guardrails/kustomization.yaml", kustomization("", []string{"guardrails.yaml"}, nil))
}
