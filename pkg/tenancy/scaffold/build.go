package scaffold

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
)

// built is the result of one folder.
type built struct {
	objects []*unstructured.Unstructured
	made    resmap.ResMap // kustomize's form of the objects
	failed  bool
}

// text returns the objects as the YAML in which Flux replaces variables. Writing YAML takes
// as long as the build, so it is created on demand.
func (b *built) text() (text string, err error) {
	defer recovered(&err)
	content, err := b.made.AsYaml()
	return string(content), err
}

// kustomizationFile returns the file of a folder, "" if it has none.
func (c *checker) kustomizationFile(folder string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, ok := c.files[path.Join(folder, name)]; ok {
			return path.Join(folder, name)
		}
	}
	return ""
}

// isFolder reports whether the tree has files below a path.
func (c *checker) isFolder(folder string) bool {
	for name := range c.files {
		if folder == "." || within(name, folder) {
			return true
		}
	}
	return false
}

// build builds a folder as Flux does, without plugins, Helm, remote bases or a disk. A folder
// without a kustomization.yaml gets the one that Flux would generate.
func (c *checker) build(folder string) *built {
	folder = path.Clean(folder)
	if b, ok := c.builds[folder]; ok {
		return b
	}
	b := &built{failed: true}
	c.builds[folder] = b // also ends a cycle
	if c.kustomizationFile(folder) == "" {
		c.complete(folder)
	}
	err := c.fill(b, folder)
	if err != nil && !c.severalNamespaces(folder, err) && !c.inTwoFiles(folder, err) {
		c.find("DoesNotBuild", c.at(folder), "it does not build: %s%s", strings.ReplaceAll(err.Error(), "'/", "'"), buildHint(err))
	}
	return b
}

// fill builds a folder, and returns the error of kustomize. If it refuses the folder first, it adds a finding and
// sets failed.
func (c *checker) fill(b *built, folder string) error {
	visit := visiting{weights: map[string]int{}, within: map[string]bool{}}
	weight := c.reach(folder, &visit)
	switch {
	case visit.refused:
		return nil
	case weight > c.maxBuilt:
		c.find("TooLarge", c.at(folder), "it includes more than %d objects, counted as often as they are included: it is not built", c.maxBuilt)
		return nil
	case c.read+weight > maxBuilds:
		c.find("TooLarge", c.at(folder), "all kustomizations together include more than %d objects, counted as often as they are included: it "+
			"is not built", maxBuilds)
		return nil
	}
	c.read += weight
	made, err := c.run(folder)
	if err != nil {
		return err
	}
	*b = *made
	c.opened(folder, b.objects)
	return nil
}

// at is the position of a finding about a folder.
func (c *checker) at(folder string) string {
	if name := c.kustomizationFile(folder); name != "" && !c.virtual[name] {
		return name
	}
	return folder
}

// run lets kustomize build a folder of the files in memory.
func (c *checker) run(folder string) (_ *built, err error) {
	defer recovered(&err)
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // Flux allows files of the whole repository, and memory contains nothing else
	options.PluginConfig = types.DisabledPluginConfig()
	made, err := krusty.MakeKustomizer(options).Run(c.memory, path.Join("/", folder))
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	b := &built{made: made}
	for _, r := range made.Resources() {
		content, err := r.Map()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.CurId(), err)
		}
		object, err := objectOf(content)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.CurId(), err)
		}
		if len(object.Object) > 0 {
			b.objects = append(b.objects, object)
		}
	}
	return b, nil
}

// objectOf returns the object that an API server would read from the content.
func objectOf(content map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, utiljson.Unmarshal(text, &object.Object)
}

// recovered turns a panic into an error: the input of kustomize is untrusted.
func recovered(err *error) {
	if caught := recover(); caught != nil {
		*err = fmt.Errorf("kustomize failed: %v", caught)
	}
}

// keep stores a file for kustomize.
func (c *checker) keep(name, content string) {
	c.files[name] = []byte(content)
	c.memory.put(name, c.files[name])
}

// complete adds the kustomization.yaml that Flux generates for a folder without one: all
// manifests below it, and folders with their own kustomization as a whole.
func (c *checker) complete(folder string) {
	var resources []string
	for name := range c.files {
		if folder != "." && !within(name, folder) || !manifest(name) {
			continue
		}
		resource := strings.TrimPrefix(name, folder+"/")
		for parent := path.Dir(name); parent != folder && parent != "."; parent = path.Dir(parent) {
			if c.kustomizationFile(parent) != "" {
				resource = strings.TrimPrefix(parent, folder+"/")
			}
		}
		if !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	slices.Sort(resources)
	name := path.Join(folder, "kustomization.yaml")
	c.virtual[name] = true
	c.keep(name, kustomization("", resources, nil))
}

// visiting is one walk through the includes of a folder.
type visiting struct {
	weights map[string]int
	within  map[string]bool
	refused bool
}

// reach walks through the includes of a folder, before kustomize does: it refuses everything
// that would be fetched or run, marks files as reached, and returns the number of objects that
// a build reads.
func (c *checker) reach(folder string, visit *visiting) int {
	if weight, known := visit.weights[folder]; known && !visit.within[folder] {
		return weight
	}
	file := c.kustomizationFile(folder)
	if visit.within[folder] {
		c.find("DoesNotBuild", file, "it includes itself, so it does not build")
	}
	if visit.within[folder] || c.bad[file] {
		visit.refused = true
		return 0
	}
	visit.within[folder] = true
	defer delete(visit.within, folder)
	var k types.Kustomization
	if err := k.Unmarshal(c.files[file]); err != nil {
		c.find("DoesNotBuild", file, "it is no kustomization: %v", firstLine(err))
		visit.refused = true
		return 0
	}
	c.reached[file] = true
	if refused := unsupported(k); refused != "" {
		c.find("DoesNotBuild", file, "%s runs programs or fetches charts: it is not built; use resources and patches", refused)
		visit.refused = true
	}
	c.generated(file, folder, k)
	for _, name := range patchFiles(k) {
		c.patched[path.Join(folder, name)] = true
	}
	weight := 1
	for _, name := range references(k) {
		target := path.Join(folder, name)
		if remote(name) {
			c.find("RemoteBase", file, "%s is fetched from elsewhere: copy it into the tree, or make it a Flux source", name)
			visit.refused = true
			continue
		}
		if path.IsAbs(name) || target == ".." || strings.HasPrefix(target, "../") {
			// The tree in memory begins at "/", so kustomize would find a file there that this walk has not
			// seen.
			c.find("DoesNotBuild", file, "%s is outside of the tree, so it does not build: name it by a path within", name)
			visit.refused = true
			continue
		}
		switch {
		case c.files[target] != nil:
			c.reached[target] = true
			visit.refused = visit.refused || c.bad[target]
			weight += max(1, c.counts[target])
		case c.kustomizationFile(target) != "":
			weight += c.reach(target, visit)
		case !c.isFolder(target):
			c.find("DoesNotBuild", file, "it names %s, which %s", name, c.notThere(target, ": take the entry out, or put the file or folder back"))
			visit.refused = true
		}
		weight = min(weight, c.maxBuilt+1)
	}
	visit.weights[folder] = weight
	return weight
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// unsupported names a field that makes kustomize run programs, or read paths that
// [references] does not know.
func unsupported(k types.Kustomization) string {
	switch {
	case len(k.Generators) > 0:
		return "generators"
	case len(k.Transformers) > 0:
		return "transformers"
	case len(k.Validators) > 0:
		return "validators"
	case len(k.HelmCharts) > 0, len(k.HelmChartInflationGenerator) > 0, k.HelmGlobals != nil:
		return "helmCharts"
	}
	return ""
}

// references lists everything that kustomize loads for a kustomization.
func references(k types.Kustomization) []string {
	names := slices.Concat(k.Resources, k.Components, k.Bases, k.Crds, k.Configurations, patchFiles(k)) //nolint:staticcheck // deprecated fields are loaded too
	for _, replacement := range k.Replacements {
		names = append(names, replacement.Path)
	}
	names = append(names, k.OpenAPI["path"])
	var sources []types.KvPairSources
	for _, generator := range k.ConfigMapGenerator {
		sources = append(sources, generator.KvPairSources)
	}
	for _, generator := range k.SecretGenerator {
		sources = append(sources, generator.KvPairSources)
	}
	for _, source := range sources {
		names = append(append(names, source.EnvSources...), source.EnvSource)
		for _, file := range source.FileSources {
			if _, after, ok := strings.Cut(file, "="); ok {
				file = after
			}
			names = append(names, file)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// patchFiles lists the files of a kustomization that are patches, with empty names for inline ones.
func patchFiles(k types.Kustomization) (names []string) {
	for _, patch := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // deprecated fields are loaded too
		names = append(names, patch.Path)
	}
	for _, patch := range k.PatchesStrategicMerge { //nolint:staticcheck // as above
		if !strings.Contains(string(patch), "\n") {
			names = append(names, string(patch))
		}
	}
	return names
}

// remote reports whether kustomize might fetch a name, or clone it with git: it does so for text that looks like
// a URL or a repository even if such a file or folder exists. remote refuses more than kustomize would fetch.
func remote(name string) bool {
	return repository.MatchString(name)
}

// repository matches a URL (also with one slash, as in a cleaned path), git's prefix, a user at a host, and GitHub.
var repository = regexp.MustCompile(`(?i)^\s*[a-z][a-z0-9+.-]*:/|://|::|^\s*https?:|^\s*[a-z][a-z0-9_.-]*@|github\.com`)

// decode returns the objects of a build.
func decode(text string) ([]*unstructured.Unstructured, error) {
	documents, err := parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read what was built: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range documents {
		var content map[string]any
		if err := document.Decode(&content); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		if len(content) == 0 {
			continue
		}
		object, err := objectOf(content)
		if err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// buildHint is the fix for errors of kustomize without one.
func buildHint(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "kustomization.yaml is empty"):
		return "; for an empty list, write resources: []"
	}
	return ""
}
