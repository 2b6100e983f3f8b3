package scaffold

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// fluxVersions has the version of all kinds in each group of Flux.
func fluxVersions() map[string]string {
	return map[string]string{
		"source.toolkit.fluxcd.io": "v1", "source.extensions.fluxcd.io": "v1beta1", "kustomize.toolkit.fluxcd.io": "v1",
		"helm.toolkit.fluxcd.io": "v2", "image.toolkit.fluxcd.io": "v1", "notification.toolkit.fluxcd.io": "v1beta3",
	}
}

// served finds objects in API versions that the tree's own CRDs do not have: Flux applies nothing of a folder
// with one of them ("no matches for kind"). Without CRDs of Flux in the tree, as in a team's repository, a
// version older than in [fluxVersions] is a warning: clusters with an older Flux still serve it.
func (c *checker) served(objects []applied) {
	versions := map[string][]string{}
	for _, o := range objects {
		if isDefinition(o.Unstructured) {
			kind, served := servedBy(o.Unstructured)
			versions[kind] = served
		}
	}
	current := fluxVersions()
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		kind := gvk.Group + " " + gvk.Kind
		inTree, known := versions[kind]
		latest, ofFlux := current[gvk.Group]
		if gvk.Kind == "Receiver" {
			latest = "v1" // before the other kinds of its group
		}
		switch at := c.of(o.folder, o.Unstructured); {
		case isResource(o.Unstructured): // our own kinds are checked elsewhere
		case known && !slices.Contains(inTree, gvk.Version):
			c.find("VersionMissing", at, "%s: the tree's CRD of %s has no version %s, so Flux applies nothing of this folder: write apiVersion: "+
				"%s/%s, and compare the fields",
				identity(o.Unstructured), gvk.Kind, gvk.Version, gvk.Group, strings.Join(inTree, " or "))
		case !known && ofFlux && apiversion.CompareKubeAwareVersionStrings(gvk.Version, latest) < 0:
			c.report(resource.Warning, "VersionOutdated", at, "%s: %s %s is outdated, and newer versions of Flux do not have it: write "+
				"apiVersion: %s/%s, and compare the fields",
				identity(o.Unstructured), gvk.Kind, gvk.Version, gvk.Group, latest)
		}
	}
}

// servedBy returns the group and kind of a CRD, and the versions that it serves.
func servedBy(definition *unstructured.Unstructured) (kind string, served []string) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		if version["served"] == true {
			name, _, _ := unstructured.NestedString(version, "name")
			served = append(served, name)
		}
	}
	return group + " " + name, served
}
