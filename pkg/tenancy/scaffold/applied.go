package scaffold

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// loose returns the folders of a team's repository that have objects and no kustomization, in them or above: Flux
// generates one. Only the platform's repository says which path it is for, so each folder is built separately.
func (c *checker) loose() []string {
	files := map[string][]string{}
	for name, content := range c.files {
		if folder := path.Dir(name); c.mayBeApplied(name) && !c.below(folder) {
			documents, err := parse(content)
			if err == nil && len(documents) > 0 && !slices.ContainsFunc(documents, func(d *yaml.Node) bool { return !isObject(d) }) {
				files[folder] = append(files[folder], path.Base(name))
			}
		}
	}
	for folder, names := range files {
		slices.Sort(names)
		file := path.Join(folder, "kustomization.yaml")
		c.virtual[file] = true
		c.keep(file, kustomization("", names, nil))
	}
	return slices.Sorted(maps.Keys(files))
}

// below reports whether a folder, or one above it, has a kustomization.
func (c *checker) below(folder string) bool {
	for ; ; folder = path.Dir(folder) {
		if c.kustomizationFile(folder) != "" {
			return true
		}
		if folder == "." {
			return false
		}
	}
}

// isObject reports whether a document is an object with a name, or a list of objects.
func isObject(document *yaml.Node) bool {
	kind := textOf(document, "kind")
	return textOf(document, "apiVersion") != "" && kind != "" &&
		(textAt(document, "metadata", "name") != "" || strings.HasSuffix(kind, "List") && field(document, "items") != nil)
}

// mayBeApplied reports whether a file is a readable manifest, and neither a kustomization nor a tool's file.
func (c *checker) mayBeApplied(name string) bool {
	return manifest(name) && !c.bad[name] && !hidden(name) && !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// orphans are manifests that no kustomization names: Flux never applies them.
func (c *checker) orphans() {
	for name, content := range c.files {
		if !c.mayBeApplied(name) || c.reached[name] {
			continue
		}
		documents, err := parse(content)
		if err != nil {
			continue
		}
		for _, document := range documents {
			switch {
			case textOf(document, "apiVersion") == "" || textOf(document, "kind") == "" || isKubeconfig(document):
				continue
			case textOf(document, "kind") == "FluxInstance":
				c.find("NotApplied", name, "no kustomization names it, so Flux would delete what it applied before, and all of Flux with it: add it "+
					"to the kustomization of its folder")
			default:
				c.find("NotApplied", name, "no kustomization names it, so nothing applies it: add it to one, or remove it")
			}
			break
		}
	}
}

// unused finds folders that Flux applies in no cluster, such as those of an earlier tree. It must run
// before folders are built separately. A folder that does not build does not show what it applies.
func (c *checker) unused(folders []string) {
	if c.settings == nil || c.settings.Layout == LayoutDemo || len(c.roots()) == 0 {
		return
	}
	for f := range c.findings {
		if f.ID == "DoesNotBuild" || f.ID == "PathMissing" {
			return
		}
	}
	c.waitingGroups()
	for _, folder := range folders {
		if file := c.kustomizationFile(folder); !c.reached[file] && !hidden(file) {
			c.report(resource.Warning, "NotApplied", file, "no cluster applies this folder: name it in a Kustomization below clusters, or remove it")
		}
	}
}

// waitingGroups marks content of groups without a cluster as reached.
func (c *checker) waitingGroups() {
	trial := *c // building each folder finds its errors
	trial.findings = map[resource.Finding]bool{}
	for _, group := range c.settings.Groups {
		if slices.ContainsFunc(c.settings.Clusters, func(name string) bool { return path.Dir(name) == group }) {
			continue
		}
		for _, parent := range []string{groupsFolder, groupApps, storesFolder, c.settings.listFolder()} {
			for _, folder := range c.folders() {
				if waits := path.Join(parent, group); folder == waits || within(folder, waits) {
					trial.reach(folder, &visiting{weights: map[string]int{}, within: map[string]bool{}})
				}
			}
		}
	}
}
