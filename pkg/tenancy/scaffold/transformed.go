package scaffold

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// maxRounds limits how often a Kustomization is built again because its own transformations changed it.
const maxRounds = 4

// transformation is the effect of a Flux Kustomization's spec on the build of its folder.
type transformation struct {
	types.Kustomization // components, patches, images, prefix, suffix and namespace
	labels, annotations map[string]string
	ignoreMissing       bool
}

// transformationOf reads the spec of a Kustomization. It returns nil if the folder is applied without
// changes.
func transformationOf(k *unstructured.Unstructured) (*transformation, error) {
	spec, _, err := unstructured.NestedMap(k.Object, "spec")
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	for from, to := range map[string]string{"components": "components", "patches": "patches", "images": "images",
		"namePrefix": "namePrefix", "nameSuffix": "nameSuffix", "targetNamespace": "namespace"} {
		if value, ok := spec[from]; ok {
			fields[to] = value
		}
	}
	if len(fields) == 0 && spec["commonMetadata"] == nil {
		return nil, nil
	}
	var t transformation
	content, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &t.Kustomization); err != nil {
		return nil, err
	}
	for i := range t.Patches { // Flux has no files and options of patches
		t.Patches[i].Path, t.Patches[i].Options = "", nil
	}
	if t.labels, _, err = unstructured.NestedStringMap(spec, "commonMetadata", "labels"); err != nil {
		return nil, err
	}
	if t.annotations, _, err = unstructured.NestedStringMap(spec, "commonMetadata", "annotations"); err != nil {
		return nil, err
	}
	t.ignoreMissing, _, err = unstructured.NestedBool(spec, "ignoreMissingComponents")
	return &t, err
}

// over returns the kustomization.yaml that kustomize-controller builds: it writes the transformation into the
// folder's own, so the fields of both count, and a prefix, a suffix or a namespace replaces the folder's own.
func (t *transformation) over(content []byte) (string, error) {
	k := types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}}
	if err := yaml.Unmarshal(content, &k); err != nil {
		return "", err
	}
	k.Namespace = cmp.Or(t.Namespace, k.Namespace)
	k.NamePrefix = cmp.Or(t.NamePrefix, k.NamePrefix)
	k.NameSuffix = cmp.Or(t.NameSuffix, k.NameSuffix)
	k.Patches = append(k.Patches, t.Patches...)
	k.Components = append(k.Components, t.Components...)
	for _, image := range t.Images {
		if i := slices.IndexFunc(k.Images, func(own types.Image) bool { return own.Name == image.Name }); i >= 0 {
			k.Images[i] = image
		} else {
			k.Images = append(k.Images, image)
		}
	}
	text, err := yaml.Marshal(k)
	return string(text), err
}

// mark adds spec.commonMetadata to all objects of a build.
func (t *transformation) mark(b *built) error {
	if b.failed || len(t.labels)+len(t.annotations) == 0 {
		return nil
	}
	with := func(own, more map[string]string) map[string]string {
		all := map[string]string{}
		maps.Copy(all, own)
		maps.Copy(all, more)
		return all
	}
	for _, r := range b.made.Resources() {
		if err := r.SetLabels(with(r.GetLabels(), t.labels)); err != nil {
			return err
		}
		if err := r.SetAnnotations(with(r.GetAnnotations(), t.annotations)); err != nil {
			return err
		}
	}
	for _, o := range b.objects {
		o.SetLabels(with(o.GetLabels(), t.labels))
		o.SetAnnotations(with(o.GetAnnotations(), t.annotations))
	}
	return nil
}

// builtBy builds the folder of a Flux Kustomization as kustomize-controller does. Kustomizations share
// builds if they transform the folder in the same way, or not at all.
func (c *checker) builtBy(k applied, folder string) *built {
	file, text, t, ok := c.transformed(k, folder)
	if !ok {
		return &built{failed: true}
	}
	if t == nil {
		return c.build(folder)
	}
	key := text + fmt.Sprint(t.labels, t.annotations, c.spec)
	if known, ok := c.changed[folder][key]; ok {
		return known
	}
	if c.changed[folder] == nil {
		c.changed[folder] = map[string]*built{}
	}
	b := &built{failed: true}
	c.changed[folder][key] = b
	own := string(c.files[file])
	c.keep(file, text)
	err := c.fill(b, folder)
	c.keep(file, own)
	if err == nil {
		err = t.mark(b)
	}
	if err != nil && !c.build(folder).failed {
		c.find("DoesNotBuild", c.of(k.folder, k.Unstructured), "%s: %s does not build with the transformations of spec, and builds without: %s",
			identity(k.Unstructured), folder, strings.ReplaceAll(err.Error(), "'/", "'"))
	}
	return b
}

// transformed returns the kustomization file of a folder, and its text as transformed by a Kustomization of Flux: t
// is nil without a transformation, or if the folder alone cannot be built. ok is false if the spec is invalid.
func (c *checker) transformed(k applied, folder string) (file, text string, t *transformation, ok bool) {
	t, err := transformationOf(k.Unstructured)
	if err != nil {
		c.find("ObjectInvalid", c.of(k.folder, k.Unstructured), "%s: spec cannot be read: %v", identity(k.Unstructured), err)
		return "", "", nil, false
	}
	if t == nil {
		return "", "", nil, true
	}
	if !c.components(k, folder, t) {
		return "", "", nil, false
	}
	if c.kustomizationFile(folder) == "" {
		c.complete(folder)
	}
	if file = c.kustomizationFile(folder); c.bad[file] {
		return "", "", nil, true
	}
	if text, err = t.over(c.files[file]); err != nil {
		return "", "", nil, true
	}
	return file, text, t, true
}

// components looks for the components of a Kustomization, whose paths are relative to its folder, and omits
// those that may be missing. It reports whether Flux finds the others.
func (c *checker) components(k applied, folder string, t *transformation) bool {
	var there []string
	for _, name := range t.Components {
		at, target := c.of(k.folder, k.Unstructured), path.Join(folder, name)
		switch {
		case remote(name):
			c.find("RemoteBase", at, "%s: spec.components names %s, which is fetched from elsewhere: copy it into the tree",
				identity(k.Unstructured), name)
			return false
		case path.IsAbs(name) || target == ".." || strings.HasPrefix(target, "../"):
			c.find("DoesNotBuild", at, "%s: spec.components names %s, which is outside of the tree: name it by a path from %s",
				identity(k.Unstructured), name, folder)
			return false
		case c.memory.Exists(target):
			there = append(there, name)
		case !t.ignoreMissing:
			c.find("PathMissing", at, "%s: spec.components names %s, and %s is not there, so Flux applies nothing of %s: correct the path, which "+
				"begins at spec.path, or set spec.ignoreMissingComponents", identity(k.Unstructured), name, target, folder)
			return false
		}
	}
	t.Components = there
	return true
}

// begin follows Flux from the folder of a cluster through the tree that it gets.
func (c *checker) begin(from cluster) *closure {
	c.see(from.ignore)
	if !c.isFolder(from.root) {
		c.find("PathMissing", from.root, "Flux begins with this folder, which %s", c.notThere(from.root, ""))
	}
	all := &closure{cluster: from, seen: map[*built]bool{}, within: map[string]bool{}, made: map[string]*artifact{}}
	_, b := c.buildRoot(from.root, from.source)
	c.follow(all, from.root, b, nil)
	c.followArtifacts(all)
	return all
}

// buildRoot builds the folder of a cluster as the Kustomization in it that begins there does. It returns that
// Kustomization, if there is one. Transformations can change that Kustomization too, so this repeats until they
// change nothing.
func (c *checker) buildRoot(root string, begins source) (own applied, b *built) {
	b = c.build(root)
	for range maxRounds {
		i := slices.IndexFunc(b.objects, func(o *unstructured.Unstructured) bool {
			kind, name, namespace := reference(o, "spec", "sourceRef")
			return isFlux(o, "Kustomization") && o.GetName() == begins.name && (source{kind, namespace, name}) == begins && folderOf(o) == root
		})
		if i < 0 {
			return own, b
		}
		own = applied{b.objects[i], root, b}
		made := c.builtBy(own, root)
		if made == b {
			return own, b
		}
		b = made
	}
	c.find("TooLarge", c.of(root, own.Unstructured), "%s changes its own spec each time that it is applied, so what it applies is unclear: "+
		"remove what changes it from its spec", identity(own.Unstructured))
	return own, &built{failed: true}
}

// countBuilt counts the folders that build.
func (c *checker) countBuilt() int {
	folders := map[string]bool{}
	for folder, b := range c.builds {
		if !b.failed {
			folders[folder] = true
		}
	}
	for folder, each := range c.changed {
		for _, b := range each {
			if !b.failed {
				folders[folder] = true
			}
		}
	}
	return len(folders)
}
