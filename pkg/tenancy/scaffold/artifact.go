package scaffold

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// artifact is an ExternalArtifact of an ArtifactGenerator, with files of other sources.
type artifact struct {
	applied // the ArtifactGenerator
	// ofTree says that it has files of this tree, and from are their folders.
	ofTree bool
	from   []string
	// prefix is the folder of this tree whose parts it contains, and parts are the folders below; simple says
	// that it has nothing else.
	prefix string
	parts  []string
	simple bool
}

// waiting is a Kustomization whose artifact is not known yet, with those that apply it.
type waiting struct {
	applied
	within map[string]bool
}

// makes adds the artifacts of an ArtifactGenerator.
func (all *closure) makes(generator applied) {
	if generator.GetKind() != "ArtifactGenerator" {
		return
	}
	sources, _, _ := unstructured.NestedSlice(generator.Object, "spec", "sources")
	outputs, _, _ := unstructured.NestedSlice(generator.Object, "spec", "artifacts")
	for _, output := range outputs {
		output, _ := output.(map[string]any)
		name, _, _ := unstructured.NestedString(output, "name")
		copies, _, _ := unstructured.NestedSlice(output, "copy")
		a := artifact{applied: generator, simple: true}
		for _, entry := range copies {
			entry, _ := entry.(map[string]any)
			a.add(entry, func(alias string) bool {
				for _, entry := range sources {
					entry, _ := entry.(map[string]any)
					kind, name, namespace := referenced(generator.Unstructured, entry)
					if entry["alias"] == alias {
						return source{kind, namespace, name} == all.source
					}
				}
				return false
			})
		}
		all.made[generator.GetNamespace()+"/"+name] = &a
	}
}

// add adds the content that one entry copies. The artifact is simple if all its parts have the same layout as
// in this tree, below one folder, so that relative names stay the same.
func (a *artifact) add(entry map[string]any, ofTree func(alias string) bool) {
	text, _ := entry["from"].(string)
	alias, from, _ := strings.Cut(strings.TrimPrefix(text, "@"), "/")
	text, _ = entry["to"].(string)
	to := path.Clean(strings.TrimPrefix(strings.TrimPrefix(text, "@artifact"), "/"))
	from, whole := strings.CutSuffix(from, "**")
	from = path.Clean(from)
	if !ofTree(alias) {
		a.simple = false
		return
	}
	prefix, fits := from, to == "."
	if !fits {
		prefix, fits = strings.CutSuffix("./"+from, "/"+to)
		prefix = path.Clean(prefix)
	}
	strategy, _ := entry["strategy"].(string)
	a.simple = a.simple && fits && whole && !strings.ContainsAny(from, "*?[{") && entry["exclude"] == nil &&
		(strategy == "" || strategy == "Overwrite") && (!a.ofTree || prefix == a.prefix)
	for strings.ContainsAny(from, "*?[{") {
		from = path.Dir(from)
	}
	a.ofTree, a.prefix, a.from, a.parts = true, prefix, append(a.from, from), append(a.parts, to)
}

// folder returns the folder of this tree for a path in the artifact.
func (a *artifact) folder(target string) (string, bool) {
	for _, part := range a.parts {
		if a.simple && (part == "." || part == target || within(target, part)) {
			return path.Join(a.prefix, target), true
		}
	}
	return "", false
}

// artifactOf returns the artifact of a Kustomization, nil if the cluster generates none.
func (all *closure) artifactOf(k *unstructured.Unstructured) *artifact {
	kind, name, namespace := reference(k, "spec", "sourceRef")
	if kind != "ExternalArtifact" {
		return nil
	}
	return all.made[namespace+"/"+name]
}

// target returns the folder of this tree that a Kustomization applies; ok is false if it applies something else.
func (all *closure) target(k *unstructured.Unstructured) (folder string, ok bool) {
	kind, name, namespace := reference(k, "spec", "sourceRef")
	if (source{kind, namespace, name}) == all.source {
		return folderOf(k), true
	}
	if a := all.artifactOf(k); a != nil {
		return a.folder(folderOf(k))
	}
	return "", false
}

// followArtifacts follows the Kustomizations whose artifacts were unknown, and marks files in artifacts as
// reached that nothing followed.
func (c *checker) followArtifacts(all *closure) {
	for seen := -1; seen != len(all.seen); {
		seen = len(all.seen)
		waiting := all.waiting
		all.waiting = nil
		for _, k := range waiting {
			all.within = k.within
			c.step(all, k.applied)
		}
	}
	followed := map[*artifact]bool{}
	for _, k := range all.objects {
		if a := all.artifactOf(k.Unstructured); a != nil && isFlux(k.Unstructured, "Kustomization") {
			if _, ok := a.folder(folderOf(k.Unstructured)); ok || !a.ofTree {
				followed[a] = ok
				continue
			}
			c.report(resource.Note, "NotFollowed", c.of(k.folder, k.Unstructured),
				"%s: what %s copies for it is not a folder of this tree as it is, so it was not followed, and what it applies was not checked",
				identity(k.Unstructured), identity(a.Unstructured))
		}
	}
	for _, a := range all.made {
		for _, folder := range a.from {
			if !followed[a] {
				c.mayApply(folder)
			}
		}
	}
}

// mayApply marks all files of a folder as reached, because an unknown object may apply them.
func (c *checker) mayApply(folder string) {
	for name := range c.files {
		if folder == "." || name == folder || within(name, folder) {
			c.reached[name] = true
		}
	}
}
