package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ignoreFile has patterns of files that Flux excludes from a source, in the form of .gitignore. A file below
// another folder applies to that folder.
const ignoreFile = ".sourceignore"

// Files that Flux excludes by default: always, and as long as neither the tree nor the source has
// patterns.
const (
	ignoredAlways  = ".git/ .gitignore .gitmodules .gitattributes"
	ignoredDefault = "*.jpg *.jpeg *.gif *.png *.wmv *.flv *.tar.gz *.zip " +
		".github/ .circleci/ .travis.yml .gitlab-ci.yml appveyor.yml .drone.yml cloudbuild.yaml codeship-services.yml codeship-steps.yml " +
		"**/.goreleaser.yml **/.sops.yaml **/.flux.yaml"
)

// ignorePattern is one pattern of [ignoreFile].
type ignorePattern struct {
	text, origin string // the line, and its file
	folder       string // the pattern applies to files below it
	parts        []string
	include      bool
	onlyFolders  bool
}

// ignorePatterns reads the lines of an [ignoreFile] as Flux does.
func ignorePatterns(text, origin, folder string) (patterns []ignorePattern) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		p := ignorePattern{text: line, origin: origin, folder: folder}
		line, p.include = strings.CutPrefix(line, "!")
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRight(line, " ")
		}
		line, p.onlyFolders = strings.CutSuffix(line, "/")
		p.parts = strings.Split(line, "/")
		patterns = append(patterns, p)
	}
	return patterns
}

// matches reports whether a pattern matches a file, or a folder above it.
func (p ignorePattern) matches(name string) bool {
	if p.folder != "." {
		if !within(name, p.folder) {
			return false
		}
		name = name[len(p.folder)+1:]
	}
	rest, anywhere, matched := strings.Split(name, "/"), len(p.parts) == 1, false
	for i, part := range p.parts {
		if part == "" || part == "**" && len(p.parts) > 1 {
			anywhere = part != "" && i+1 < len(p.parts)
			continue
		}
		if len(rest) == 0 || len(p.parts) > 1 && strings.Contains(part, "**") {
			return false
		}
		at := slices.IndexFunc(rest, func(name string) bool { ok, _ := path.Match(part, name); return ok })
		if at != 0 && !anywhere {
			return false
		}
		if matched = at >= 0; !matched {
			at = len(rest) - 1
		}
		rest, anywhere = rest[at+1:], false
	}
	return matched && (!p.onlyFolders || len(rest) > 0)
}

// ignoredBy returns the last pattern that matches a file, if it excludes the file.
func ignoredBy(patterns []ignorePattern, name string) (ignorePattern, bool) {
	for _, p := range slices.Backward(patterns) {
		if p.matches(name) {
			return p, !p.include
		}
	}
	return ignorePattern{}, false
}

// ofSource is the origin of patterns outside of files.
const ofSource = "spec.ignore of the source " + platformSource

// ignores returns the patterns of a tree whose source has the given spec.ignore.
func ignores(files map[string][]byte, spec string) []ignorePattern {
	var own []ignorePattern
	for _, folder := range slices.Sorted(maps.Keys(files)) {
		if path.Base(folder) == ignoreFile {
			own = append(own, ignorePatterns(string(files[folder]), folder, path.Dir(folder))...)
		}
	}
	slices.SortStableFunc(own, func(a, b ignorePattern) int { return strings.Count(a.origin, "/") - strings.Count(b.origin, "/") })
	own = append(own, ignorePatterns(spec, ofSource, ".")...)
	lines := ignoredAlways
	if len(own) == 0 {
		lines += " " + ignoredDefault
	}
	return append(ignorePatterns(strings.ReplaceAll(lines, " ", "\n"), "those that Flux has by default", "."), own...)
}

// see keeps only the files that Flux gets from a source with the given spec.ignore.
func (c *checker) see(spec string) {
	if c.whole == nil {
		c.whole = maps.Clone(c.files)
	} else if c.spec == spec {
		return
	}
	c.spec, c.files, c.memory, c.builds, c.ignored = spec, map[string][]byte{}, newMemory(), map[string]*built{}, map[string]ignorePattern{}
	patterns := ignores(c.whole, spec)
	for name, content := range c.whole {
		if by, excluded := ignoredBy(patterns, name); excluded {
			c.ignored[name] = by
			continue
		}
		c.keep(name, string(content))
	}
}

// ignoreIn returns spec.ignore of the source of a cluster's folder.
func (c *checker) ignoreIn(root string) string {
	for _, file := range slices.Sorted(maps.Keys(c.ignores)) {
		if within(file, root) || root == "." {
			return c.ignores[file]
		}
	}
	return ""
}

// ignoreOf returns the spec.ignore for files that belong to no single cluster.
func ignoreOf(clusters []cluster) string {
	if len(clusters) == 0 {
		return ""
	}
	return clusters[0].ignore
}

// notThere says that Flux has no file or folder with a name, why, and what to do; remedy is for one that the tree
// lacks.
func (c *checker) notThere(name, remedy string) string {
	for _, file := range slices.Sorted(maps.Keys(c.ignored)) {
		if file == name || within(file, name) {
			by, list := c.ignored[file], ignoreFile
			if by.origin == ofSource {
				list = "spec.ignore" // which overrides the file
			}
			return fmt.Sprintf("is in the tree, but Flux does not get it, because the pattern %s of %s excludes it: add the line %s to %s, or "+
				"remove the pattern", by.text, by.origin, included(file), list)
		}
	}
	return "is not there" + remedy
}

// included is the pattern that includes a file again, with its top folder.
func included(file string) string {
	top, _, below := strings.Cut(file, "/")
	if below {
		top += "/"
	}
	return "!/" + top
}

// specIgnore returns spec.ignore of the platform's source in a document, or in a document's patch for it.
func specIgnore(document *yaml.Node) string {
	spec := field(document, "spec")
	switch {
	case document.Kind == yaml.SequenceNode:
		for _, operation := range document.Content {
			if textOf(operation, "path") == "/spec/ignore" {
				return textOf(operation, "value")
			}
		}
	case textOf(document, "kind") == "GitRepository" && spec != nil && textAt(document, "metadata", "name") == platformSource:
		return textOf(spec, "ignore")
	}
	if nested := field(document, "kustomize"); nested != nil {
		document = nested
	} else if spec != nil && field(spec, "kustomize") != nil {
		document = field(spec, "kustomize")
	}
	patches := field(document, "patches")
	if patches == nil {
		return ""
	}
	for _, patch := range patches.Content {
		inner, err := parse([]byte(textOf(patch, "patch")))
		for _, document := range inner {
			if ignore := specIgnore(document); err == nil && ignore != "" {
				return ignore
			}
		}
	}
	return ""
}

// reachesFlux returns a [RefusedError] if Flux would not get manifests of the tree, because the folder's own
// [ignoreFile] excludes them.
func reachesFlux(dir string, tree Tree) error {
	text, err := readExisting(dir, ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	patterns, missing := ignorePatterns(text, ignoreFile, "."), map[string]bool{}
	for _, file := range tree.Files {
		if _, excluded := ignoredBy(patterns, file.Path); excluded && manifest(file.Path) && !hidden(file.Path) &&
			!within(file.Path, "bootstrap") {
			missing[included(file.Path)] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &RefusedError{
		fmt.Sprintf("nothing was written: %s excludes files that Flux must get from this tree: add these lines at its end, and run "+
			"this again\n%s",
			ignoreFile, strings.Join(slices.Sorted(maps.Keys(missing)), "\n"))}
}
