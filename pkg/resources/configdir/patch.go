package configdir

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Patch is a file that changes objects of other files, so its content is not an object.
type Patch struct {
	File string
	// Kustomization is the file that lists it.
	Kustomization string
	// Root is the folder of the whole repository, as far as its files show it, else the folder of the
	// Kustomization.
	Root string
}

// maxParents bounds how far above a file to look for kustomizations.
const maxParents = 32

// rootMarks returns files that mark the folder of a whole repository: the settings of a platform or of a team,
// or Git.
func rootMarks() []string { return []string{".landwaiter.yaml", ".landwaiter-team.yaml", ".git"} }

// kustomizations returns the names of files that kustomize reads.
func kustomizations() []string {
	return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
}

// patches determines which files are patches of kustomizations. It reads each kustomization
// once.
type patches struct{ listed map[string]map[string]bool }

// find reports whether a kustomization in the folder of a file, or in one above it within the same repository, lists the
// file as a patch.
func (p patches) find(file string) (patch Patch, found bool) {
	target, err := filepath.Abs(file)
	if err != nil {
		return Patch{}, false
	}
	folder, shown := filepath.Dir(target), filepath.Dir(file)
	for range maxParents {
		for _, name := range kustomizations() {
			if !found && p.of(filepath.Join(folder, name))[target] {
				patch, found = Patch{File: file, Kustomization: filepath.Join(shown, name), Root: shown}, true
			}
		}
		whole := slices.ContainsFunc(rootMarks(), func(name string) bool { _, err := os.Lstat(filepath.Join(folder, name)); return err == nil })
		if whole && found {
			patch.Root = shown
		}
		if whole || folder == filepath.Dir(folder) {
			break
		}
		folder, shown = filepath.Dir(folder), filepath.Join(shown, "..")
	}
	return patch, found
}

// of returns the files that a kustomization lists as patches, none if it cannot be read.
func (p patches) of(kustomization string) map[string]bool {
	if known, ok := p.listed[kustomization]; ok {
		return known
	}
	p.listed[kustomization] = map[string]bool{}
	info, err := os.Stat(kustomization)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(kustomization) //nolint:gosec // whoever runs the program names a file that it is about
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	var content struct {
		Patches  []struct{ Path string } `yaml:"patches"`
		JSON6902 []struct{ Path string } `yaml:"patchesJson6902"`
		Merged   []string                `yaml:"patchesStrategicMerge"`
	}
	if err != nil || yamlv3.Unmarshal(text, &content) != nil {
		return nil
	}
	for _, patch := range slices.Concat(content.Patches, content.JSON6902) {
		content.Merged = append(content.Merged, patch.Path)
	}
	for _, name := range content.Merged {
		if name != "" && !strings.Contains(name, "\n") {
			p.listed[kustomization][filepath.Join(filepath.Dir(kustomization), name)] = true
		}
	}
	return p.listed[kustomization]
}

// leavePatches removes the patches from texts, and returns them. It also removes kustomizations without a kind, which
// is optional for them.
func leavePatches(texts map[string][]byte) (left []Patch) {
	known := patches{listed: map[string]map[string]bool{}}
	for file, text := range texts {
		var header struct {
			Kind string `yaml:"kind"`
		}
		if slices.Contains(kustomizations(), filepath.Base(file)) && yamlv3.Unmarshal(text, &header) == nil && header.Kind == "" {
			delete(texts, file)
			continue
		}
		if patch, found := known.find(file); found && file != standardInput {
			left = append(left, patch)
			delete(texts, file)
		}
	}
	slices.SortFunc(left, func(a, b Patch) int { return strings.Compare(a.File, b.File) })
	return left
}
