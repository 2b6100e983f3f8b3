package scaffold

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// source identifies the source with which Flux begins in a cluster, which is this tree.
type source struct{ kind, namespace, name string }

// bootstrapped is the source of flux bootstrap.
func bootstrapped() source { return source{"GitRepository", fluxNamespace, platformSource} }

// instance is a FluxInstance, from which the Flux Operator installs Flux instead of flux bootstrap.
type instance struct {
	file   string
	object *unstructured.Unstructured
}

// isInstance reports whether an object is a FluxInstance.
func isInstance(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "fluxcd.controlplane.io" && o.GetKind() == "FluxInstance"
}

// instance adds a FluxInstance of a file.
func (c *checker) instance(file string, document *yaml.Node) {
	var content map[string]any
	if document.Decode(&content) != nil {
		return
	}
	if o, err := objectOf(content); err == nil && isInstance(o) {
		c.instances = append(c.instances, instance{file, o})
	}
}

// root is the folder with which Flux begins, "" if the FluxInstance only installs Flux.
func (i instance) root() string {
	if _, syncs, _ := unstructured.NestedMap(i.object.Object, "spec", "sync"); !syncs {
		return ""
	}
	target, _, _ := unstructured.NestedString(i.object.Object, "spec", "sync", "path")
	return cmp.Or(strings.TrimPrefix(path.Join("/", target), "/"), ".")
}

// source is the source that the Flux Operator creates from spec.sync.
func (i instance) source() source {
	kind, _, _ := unstructured.NestedString(i.object.Object, "spec", "sync", "kind")
	name, _, _ := unstructured.NestedString(i.object.Object, "spec", "sync", "name")
	namespace := cmp.Or(i.object.GetNamespace(), fluxNamespace)
	return source{cmp.Or(kind, "GitRepository"), namespace, cmp.Or(name, namespace)}
}

// instanceOf returns the FluxInstance that begins with a folder, nil if there is none.
func (c *checker) instanceOf(root string) (found *instance) {
	for _, i := range c.instances {
		if i.root() == root && (found == nil || i.file < found.file) {
			found = &i
		}
	}
	return found
}

// lockedInstance checks whether the FluxInstance of a cluster locks Flux down: by spec.cluster.multitenant, or
// by patches. The applied object counts, and the file only if nothing applies it.
func (c *checker) lockedInstance(all *closure) {
	i := all.instance
	if i == nil {
		return
	}
	for _, o := range all.objects {
		if isInstance(o.Unstructured) {
			i = &instance{c.of(o.folder, o.Unstructured), o.Unstructured}
		}
	}
	if multitenant, _, _ := unstructured.NestedBool(i.object.Object, "spec", "cluster", "multitenant"); multitenant {
		return
	}
	patches, _, _ := unstructured.NestedSlice(i.object.Object, "spec", "kustomize", "patches")
	trial := &checker{files: map[string][]byte{}, memory: newMemory()}
	trial.keep("flux.yaml", trialFlux())
	trial.keep("kustomization.yaml", kustomization("", []string{"flux.yaml"}, object{"patches": patches}))
	const todo = "set spec.cluster.multitenant: true"
	made, err := trial.run(".")
	if err != nil {
		c.find("NotLockedDown", i.file, "%s: whether Flux is locked down cannot be tried: %v; %s", identity(i.object), err, todo)
		return
	}
	if missing := c.platform().unlocked(made.objects); len(missing) > 0 {
		c.find("NotLockedDown", i.file, "%s: Flux is not locked down: %s; %s", identity(i.object), missing[0], todo)
	}
}

// bootstraps reports whether flux bootstrap installs Flux into one of the folders, and not the Flux Operator.
func (p Platform) bootstraps(folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return p.instances[folder] == nil })
}

// byOperator records the folders of dir in which the Flux Operator installs Flux, with their manifests, so that
// nothing of flux bootstrap is written into them. A check reports unreadable ones.
func (p *Platform) byOperator(dir string) error {
	c, err := newChecker(CheckOptions{})
	if err != nil {
		return err
	}
	if c.load(dir) == nil {
		c.inspect()
	}
	for _, i := range c.instances {
		for _, root := range []string{i.root(), path.Dir(i.file), path.Dir(path.Dir(i.file))} {
			folder := path.Join(root, "flux-system")
			if root == "" || p.instances[folder] != nil {
				continue
			}
			if p.instances == nil {
				p.instances = map[string][]string{}
			}
			p.instances[folder] = []string{}
			for _, name := range slices.Sorted(maps.Keys(c.files)) {
				if path.Dir(name) == folder && manifest(name) {
					p.instances[folder] = append(p.instances[folder], path.Base(name))
				}
			}
		}
	}
	return nil
}
