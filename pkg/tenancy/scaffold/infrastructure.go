package scaffold

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/config/crd"
	"github.com/landwaiter/landwaiter/library"
)

// Folders of the library that hold no template.
const (
	libraryConstraints = "constraints"
	imagesSet          = "images"
)

// imagesKind is the kind of the constraint in [imagesSet].
const imagesKind = "VerifiedImages"

// copied returns a file that is compiled into the program, so that it cannot be missing.
func copied(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		panic(fmt.Sprintf("scaffold: read the program's own %s: %v", name, err))
	}
	return string(text)
}

// matching lists the files that are compiled into the program and match a pattern.
func matching(files fs.FS, pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(fmt.Sprintf("scaffold: list the program's own %s: %v", pattern, err))
	}
	return names
}

// CRDs come first and apart from the chart, so that an upgrade changes them before
// any program that needs them.
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
		"Fails closed; docs/install.md of Landwaiter says what each value is for.")
}

func (p Platform) landwaiter(t *Tree) {
	values := object{
		"crds":       object{"install": false},
		"guardrails": object{"enabled": p.Operator},
	}
	if p.Operator {
		values["operator"] = object{"enabled": true}
	} else {
		values["guardrails"] = object{"enabled": false, "external": true} // a step of their own
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
		// Flux then acts with the permissions of its own controller, as it does without an account.
		"serviceAccountName": "helm-controller",
		"install":            object{"crds": "CreateReplace", "remediation": object{"retries": 3}},
		"upgrade":            object{"crds": "CreateReplace", "remediation": object{"retries": 3}},
		"values":             values,
	}
	maps.Copy(spec, from)
	t.add(path.Join(folder, "release.yaml"), document(comment, object{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": named(fluxNamespace, name), "spec": spec}))
	t.add(path.Join(folder, "kustomization.yaml"), kustomization("", []string{"namespace.yaml", "source.yaml", "release.yaml"},
		object{"patches": ownValues(t, folder, named(fluxNamespace, name), object{})}))
}

// valuesFile has the values of a chart that people choose.
const valuesFile = "values-own.yaml"

// ownValues adds the file for values that people choose, which are merged over those of a
// release, and returns the patch that does so. It is only ever created.
func ownValues(t *Tree, folder string, metadata, values object) []object {
	t.seed(path.Join(folder, valuesFile), document("Your values for the chart: they win over those of the release. landwaiter never changes this file.", object{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": object{"values": values}}))
	return []object{{"path": valuesFile}}
}

// chartSource returns the source of a chart, and the fields of a HelmRelease that name it.
func chartSource(chart Chart, name, namespace, chartName string) (source, from object) {
	if strings.HasPrefix(chart.URL, "oci://") {
		ref := object{"tag": chart.Version}
		if !exactVersion.MatchString(chart.Version) {
			ref = object{"semver": chart.Version}
		}
		return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": named(namespace, name),
				"spec": object{"interval": "1h", "url": strings.TrimSuffix(chart.URL, "/"), "ref": ref,
					"layerSelector": object{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"}}},
			object{"chartRef": object{"kind": "OCIRepository", "name": name}}
	}
	if strings.HasSuffix(chart.URL, ".git") {
		return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": named(namespace, name),
				"spec": object{"interval": "5m", "url": chart.URL, "ref": gitRef(chart.Version)}},
			object{"chart": object{"spec": object{"chart": "./charts/" + chartName, "reconcileStrategy": "Revision",
				"sourceRef": object{"kind": "GitRepository", "name": name}}}}
	}
	return object{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "metadata": named(namespace, name),
			"spec": object{"interval": "1h", "url": chart.URL}},
		object{"chart": object{"spec": object{"chart": chartName, "version": chart.Version,
			"sourceRef": object{"kind": "HelmRepository", "name": name}}}}
}

// gitRef is the tag of a version, or the branch main if any version will do.
func gitRef(version string) object {
	switch {
	case exactVersion.MatchString(version):
		return object{"tag": version}
	case version == "" || version == "*":
		return object{"branch": "main"}
	}
	return object{"semver": version}
}

var exactVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

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
	sets := []string{imagesSet}
	for _, name := range matching(library.Files, libraryConstraints+"/*/kustomization.yaml") {
		sets = append(sets, path.Base(path.Dir(name)))
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// policies adds the chosen sets of constraints, and one place that says how strict they
// all are.
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
	// The guardrails keep these labels, also while Gatekeeper is away.
	patches = append(patches, withoutConstraint("ProtectedNamespaceLabels"))
	if p.GitHubOrg == "" {
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
		kustomization("Put your own policies here, such as ClusterVerifiers and a ClusterVerificationPolicy. landwaiter\nnever changes this folder.", nil, nil))
	t.add("infrastructure/policies/kustomization.yaml",
		kustomization("The first patch says how strict all constraints are: dryrun, warn or deny. Of the sets, the\nconstraints that this tree has no use for, or no values, are left out. The rules for teams leave\nout infrastructureNamespaces of "+SettingsFile+".", append(resources, "own"), object{"patches": patches}))
}

const constraintGroup = "constraints.gatekeeper.sh"

// aboutTeams matches the library's constraints about what teams run, but for images, and about
// their keys in shared secret stores. They leave out the namespaces of the platform itself.
const aboutTeams = "(allowed-users-and-groups|apparmor-profile|container-allowed-ports|external-secret-tenant-keys|no-host-path-volumes|no-privileged-containers|seccomp-profile)"

func withoutConstraint(kind string) object {
	return object{"target": object{"group": constraintGroup, "kind": kind},
		"patch": encode(object{"$patch": "delete", "apiVersion": constraintGroup + "/v1beta1", "kind": kind, "metadata": object{"name": "any"}})}
}

// allowedSources limits the sources of teams to those of one organisation.
func (p Platform) allowedSources() object {
	organisation := strings.ToLower(p.GitHubOrg)
	return object{"target": object{"group": constraintGroup, "kind": "FluxAllowedSources"},
		"patch": encode([]object{{"op": "add", "path": "/spec/parameters", "value": object{
			"gitPrefixes":  []string{"https://github.com/" + p.GitHubOrg + "/", "ssh://git@github.com/" + p.GitHubOrg + "/"},
			"ociPrefixes":  []string{"oci://ghcr.io/" + organisation + "/"},
			"helmPrefixes": []string{"https://" + organisation + ".github.io/"},
		}}})}
}

// setsWithin returns the sets that a set includes.
func setsWithin(set string) (others []string) {
	if set == imagesSet {
		return nil
	}
	for _, resource := range resourcesOf(copied(library.Files, path.Join(libraryConstraints, set, "kustomization.yaml"))) {
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
		t.add(path.Join(folder, "kustomization.yaml"), kustomization("Nobody verifies the images of these namespaces; exemptNamespaces in "+SettingsFile+" lists them.",
			[]string{"verified-images.yaml"}, object{"patches": []object{{"target": object{"kind": imagesKind},
				"patch": encode([]object{{"op": "add", "path": "/spec/match/excludedNamespaces", "value": p.ExemptNamespaces}})}}}))
		return
	}
	for _, name := range matching(library.Files, from+"/*.yaml") {
		t.add(path.Join(folder, path.Base(name)), copied(library.Files, name))
	}
}

// guardrails are in the tree unless the chart brings them for the operator, which does not
// start without its guardrails.
func (p Platform) guardrails(t *Tree) {
	if p.Operator {
		return
	}
	t.add("infrastructure/guardrails/guardrails.yaml", copied(config.Files, "guardrails/guardrails.yaml"))
	t.add("infrastructure/guardrails/kustomization.yaml", kustomization("", []string{"guardrails.yaml"}, nil))
}
