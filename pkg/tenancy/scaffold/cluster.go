package scaffold

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// cluster is the start of Flux in one cluster.
type cluster struct {
	root string
	// variables is the content of the cluster's own ConfigMap.
	variables map[string]string
	// ignore is spec.ignore of the source with which Flux begins.
	ignore string
	// source is the source with which Flux begins.
	source source
	// instance installs Flux; nil if flux bootstrap does.
	instance *instance
}

func (c cluster) name() string {
	if name := c.variables["cluster_name"]; name != "" {
		return c.root + " (" + name + ")"
	}
	return c.root
}

// roots are the folders with which Flux begins: those above flux bootstrap's files, and those that
// FluxInstances name.
func (c *checker) roots() (roots []string) {
	for _, folder := range c.folders() {
		if path.Base(folder) == "flux-system" {
			roots = append(roots, path.Dir(folder))
		}
	}
	for _, i := range c.instances {
		if root := i.root(); root != "" {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// clusters are the clusters in which Flux begins with a folder; in groups, one for each cluster of the
// group.
func (c *checker) clusters() []cluster {
	var found []cluster
	for _, root := range c.roots() {
		at := cluster{root: root, ignore: c.ignoreIn(root), source: bootstrapped(), instance: c.instanceOf(root)}
		if at.instance != nil {
			at.source = at.instance.source()
		}
		var names []string
		if c.settings != nil && c.settings.Layout == LayoutGroups && path.Dir(root) == groupsFolder {
			for _, name := range c.settings.Clusters {
				if path.Dir(name) == path.Base(root) {
					names = append(names, path.Base(name))
				}
			}
			if len(names) == 0 {
				continue // Flux begins there in no cluster yet
			}
		}
		for _, name := range names {
			of := at
			of.variables = map[string]string{"cluster_name": name}
			found = append(found, of)
		}
		if len(names) == 0 {
			found = append(found, at)
		}
	}
	return found
}

// applied is an object that Flux applies in a cluster, with its folder.
type applied struct {
	*unstructured.Unstructured
	folder string
	by     *built // nil if nothing is applied twice
}

// from has the folder of each object.
func from(folder string, objects []*unstructured.Unstructured) []applied {
	found := make([]applied, len(objects))
	for i, o := range objects {
		found[i] = applied{Unstructured: o, folder: folder}
	}
	return found
}

// closure is everything that Flux applies in a cluster from this tree.
type closure struct {
	cluster
	objects []applied
	seen    map[*built]bool
	within  map[string]bool      // Kustomizations that apply one another, down to the current one
	made    map[string]*artifact // ExternalArtifacts by namespace and name
	waiting []waiting            // Kustomizations of artifacts that nothing generates yet
	teams   map[string]applied   // namespaces of teams, with the object that shows it
}

// cluster checks what one cluster has.
func (c *checker) cluster(ctx context.Context, from cluster) error {
	all := c.begin(from)
	all.teams = c.teamsOf(all)
	c.lockedInstance(all)
	c.tenantsLast(all, c.flux(all))
	c.prunedDefinitions(all)
	c.twice(all)
	c.served(all.objects)
	c.chartSources(all)
	c.schemas(all)
	c.allowedSources(all)
	c.sharedSecrets(all)
	c.lockout(ctx, all)
	wrong, err := c.resources(ctx, all)
	if err != nil {
		return err
	}
	c.tenants(all, wrong)
	return nil
}

// follow checks the objects of a built folder, and builds the folders of the Flux Kustomizations
// in it.
func (c *checker) follow(all *closure, folder string, b *built, variables map[string]string) {
	if all.seen[b] {
		return
	}
	all.seen[b] = true
	objects := b.objects
	if variables != nil && !b.failed {
		text, err := b.text()
		if c.replaced += replacedSize(text, variables); c.replaced > maxReplaced {
			c.find("TooLarge", c.at(folder), "it and what was checked before have more than %d MiB once variables are replaced: use shorter values",
				maxReplaced>>20)
			return
		}
		if err == nil {
			objects, err = decode(substitute(text, variables))
		}
		if err != nil {
			c.find("DoesNotBuild", c.at(folder), "it cannot be read once variables are replaced: %v", err)
			return
		}
		c.opened(folder, objects)
	}
	c.objects(folder, objects)
	for _, o := range objects {
		all.objects = append(all.objects, applied{o, folder, b})
		all.makes(applied{o, folder, b})
	}
	for _, o := range objects {
		if isFlux(o, "Kustomization") {
			c.step(all, applied{o, folder, b})
		}
	}
}

// step follows a Kustomization of a folder.
func (c *checker) step(all *closure, k applied) {
	next, ofTree := all.target(k.Unstructured)
	if !ofTree {
		if all.artifactOf(k.Unstructured) == nil {
			all.waiting = append(all.waiting, waiting{k, maps.Clone(all.within)})
		}
		return
	}
	at, id := c.of(k.folder, k.Unstructured), identity(k.Unstructured)
	target, _, _ := unstructured.NestedString(k.Object, "spec", "path")
	if strings.Contains(next, "${") {
		c.find("PathMissing", at, "%s: spec.path %s has a variable that nothing replaces: add postBuild.substituteFrom to the Kustomization "+
			"that applies it", id, target)
		return
	}
	if !c.isFolder(next) {
		c.find("PathMissing", at, "%s: spec.path %s %s", id, target, c.notThere(next, ""))
		return
	}
	made := c.builtBy(k, next)
	if all.within[id] && !all.seen[made] || len(all.within) == maxPathDepth {
		c.find("TooLarge", at, "%s is not followed, because it changes its own spec, or more than %d Kustomizations apply one another: let it "+
			"apply another folder than its own", id, maxPathDepth)
		return
	}
	if moved, _, _ := unstructured.NestedString(k.Object, "spec", "targetNamespace"); all.seen[made] && moved == "" &&
		k.GetName() != platformSource {
		c.find("AppliedTwice", at, "%s: spec.path %s is applied by another Kustomization too, and each takes the objects from the other: keep "+
			"it in one place", id, target)
	}
	c.decrypted(at, k.Unstructured, made)
	below := maps.Clone(all.within)
	all.within[id] = true
	c.follow(all, next, made, all.replaced(k.Unstructured))
	all.within = below
}

// replaced returns the variables of a Kustomization, nil if it replaces none.
func (all *closure) replaced(o *unstructured.Unstructured) map[string]string {
	build, found, _ := unstructured.NestedMap(o.Object, "spec", "postBuild")
	if !found {
		return nil
	}
	variables := map[string]string{}
	if sources, _, _ := unstructured.NestedSlice(build, "substituteFrom"); len(sources) > 0 {
		maps.Copy(variables, all.variables)
	}
	own, _, _ := unstructured.NestedStringMap(build, "substitute")
	maps.Copy(variables, own)
	return variables
}

// variable matches a variable of Flux: a default may contain variables too, and $$ escapes one.
var variable = regexp.MustCompile(`\$?\$\{([_a-zA-Z][_a-zA-Z0-9]*)(?:(?::[-=?+]|=)((?:\$\{[^}]*\}|[^}])*))?\}`)

// substitute replaces variables as Flux does after a build. A variable without a value becomes its default, or
// empty.
func substitute(text string, variables map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		found := variable.FindStringSubmatch(match)
		return cmp.Or(variables[found[1]], substitute(found[2], variables))
	})
}

// replacedSize is the length of a text after [substitute].
func replacedSize(text string, variables map[string]string) int {
	size := len(text)
	for _, found := range variable.FindAllStringSubmatchIndex(text, -1) {
		size += len(variables[text[found[2]:found[3]]])
		if found[4] >= 0 {
			size += replacedSize(text[found[4]:found[5]], variables)
		}
	}
	return size
}

func isFlux(o *unstructured.Unstructured, kind string) bool {
	return o.GetKind() == kind && strings.HasSuffix(o.GroupVersionKind().Group, ".toolkit.fluxcd.io")
}

// reference returns the target of a field; the namespace is the object's own if none is
// given.
func reference(o *unstructured.Unstructured, fields ...string) (kind, name, namespace string) {
	ref, _, _ := unstructured.NestedMap(o.Object, fields...)
	return referenced(o, ref)
}

// referenced reads a reference of an object.
func referenced(o *unstructured.Unstructured, ref map[string]any) (kind, name, namespace string) {
	kind, _, _ = unstructured.NestedString(ref, "kind")
	name, _, _ = unstructured.NestedString(ref, "name")
	namespace, _, _ = unstructured.NestedString(ref, "namespace")
	return kind, name, cmp.Or(namespace, o.GetNamespace())
}

// flux checks the Flux objects of one cluster against each other, and returns the dependencies of
// each.
func (c *checker) flux(all *closure) (order map[string][]string) {
	present := map[string]bool{all.source.kind + " " + all.source.namespace + "/" + all.source.name: true}
	for name := range all.made {
		present["ExternalArtifact "+name] = true
	}
	order = map[string][]string{}
	for _, o := range all.objects {
		present[identity(o.Unstructured)] = true
	}
	for _, o := range all.objects {
		if !isFlux(o.Unstructured, "Kustomization") && !isFlux(o.Unstructured, "HelmRelease") {
			continue
		}
		at := c.of(o.folder, o.Unstructured)
		c.accountMissing(o)
		c.sources(at, o.Unstructured, present)
		after, _, _ := unstructured.NestedSlice(o.Object, "spec", "dependsOn")
		for _, entry := range after {
			ref, _ := entry.(map[string]any)
			_, name, namespace := referenced(o.Unstructured, ref)
			target := o.GetKind() + " " + namespace + "/" + name
			if !present[target] {
				c.find("DependencyMissing", at, "%s: spec.dependsOn names %s, which is not there", identity(o.Unstructured), target)
			}
			order[identity(o.Unstructured)] = append(order[identity(o.Unstructured)], target)
		}
	}
	if circle := cycle(order); circle != nil {
		c.find("DependencyCircle", c.at(all.root), "spec.dependsOn goes in a circle, so none of these is ever applied: %s",
			strings.Join(circle, ", "))
	}
	return order
}

// cycle returns objects that wait for each other, nil if there are none.
func cycle(order map[string][]string) []string {
	left := maps.Clone(order)
	for {
		before := len(left)
		for name, after := range left {
			if !slices.ContainsFunc(after, func(target string) bool { return left[target] != nil }) {
				delete(left, name)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if len(left) == before {
			return slices.Sorted(maps.Keys(left))
		}
	}
}

// twice finds objects that two Flux Kustomizations apply: each takes them from the other.
func (c *checker) twice(all *closure) {
	first := map[string]applied{}
	for _, o := range all.objects {
		id := o.GroupVersionKind().Group + " " + identity(o.Unstructured)
		bootstrap := isFlux(o.Unstructured, "Kustomization") && o.GetName() == platformSource
		if other, ok := first[id]; ok && other.by != o.by && !bootstrap {
			c.find("AppliedTwice", c.of(o.folder, o.Unstructured), "%s is applied from %s too: keep it in one place",
				identity(o.Unstructured), other.folder)
			continue
		}
		first[id] = o
	}
}

// resources lets the caller check all resources of landwaiter.dev in a cluster, so that
// conflicts between Tenants show.
func (c *checker) resources(ctx context.Context, all *closure) (wrong []string, err error) {
	if c.options.Resources == nil {
		return nil, nil
	}
	if !slices.ContainsFunc(all.objects, func(o applied) bool { return isResource(o.Unstructured) }) {
		return nil, nil
	}
	text, err := all.text(nil)
	if err != nil {
		return nil, err
	}
	found, err := c.options.Resources(ctx, text, true)
	if err != nil {
		return nil, fmt.Errorf("check the resources of %s: %w", all.name(), err)
	}
	for _, f := range found {
		c.report(f.Severity, f.ID, cmp.Or(c.where(all.objects, f.Message), c.at(all.root)), "%s", f.Message)
		if f.Severity == resource.Error {
			wrong = append(wrong, f.Message)
		}
	}
	return wrong, nil
}

// isResource reports whether an object is a resource of Landwaiter.
func isResource(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == v1beta1.Group
}

// where returns the file of a message about "Kind name: …", "" if it is about none of the objects.
func (c *checker) where(objects []applied, message string) string {
	for _, o := range objects {
		switch {
		case !isResource(o.Unstructured) || !strings.HasPrefix(message, identity(o.Unstructured)+":"):
		case o.GetKind() == v1beta1.KindTenant:
			return c.tenantFile(o)
		default:
			return c.of(o.folder, o.Unstructured)
		}
	}
	return ""
}
