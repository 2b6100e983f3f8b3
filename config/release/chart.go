package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// chart is what a release needs of Chart.yaml.
type chart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
}

func readChart(folder fs.FS) (chart, error) {
	text, err := fs.ReadFile(folder, "Chart.yaml")
	if err != nil {
		return chart{}, fmt.Errorf("read the chart: %w", err)
	}
	var c chart
	if err := yaml.Unmarshal(text, &c); err != nil {
		return chart{}, fmt.Errorf("read Chart.yaml: %w", err)
	}
	if c.Name == "" || c.Version == "" || c.AppVersion == "" {
		return chart{}, fmt.Errorf("the chart lacks a name, a version or an appVersion")
	}
	return c, nil
}

// released matches the version of a release, unlike one of a commit after it.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// check holds a released version against the chart, whose appVersion is the tag of the
// image that it installs.
func (c chart) check(version string) error {
	if want := "v" + c.AppVersion; released.MatchString(version) && version != want {
		return fmt.Errorf("the chart has appVersion %s, so this is %s and not %s: change charts/landwaiter/Chart.yaml, or tag %s", c.AppVersion,
			want, version, want)
	}
	return nil
}

// packChart returns a chart as `helm package` lays it out, but with the same bytes each
// time: helm writes the current time into it.
func packChart(folder fs.FS, name string, o origin) ([]byte, error) {
	ignored, err := ignoredByHelm(folder)
	if err != nil {
		return nil, err
	}
	contents := files{}
	err = fs.WalkDir(folder, ".", func(found string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case found != "." && slices.ContainsFunc(ignored, func(pattern string) bool { ok, _ := path.Match(pattern, entry.Name()); return ok }):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", found)
		}
		text, err := fs.ReadFile(folder, found)
		contents[path.Join(name, found)] = file{content: text}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	archive, err := pack(contents, false, o.created)
	if err != nil {
		return nil, err
	}
	return compress(archive)
}

// ignoredByHelm returns the patterns of .helmignore. It refuses the forms that match
// more than a name, rather than to pack what helm would not.
func ignoredByHelm(folder fs.FS) ([]string, error) {
	text, err := fs.ReadFile(folder, ".helmignore")
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if _, err := path.Match(line, ""); err != nil || strings.ContainsAny(line, "/!") {
			return nil, fmt.Errorf(".helmignore has %q: only names, with wildcards, are supported", line)
		}
		patterns = append(patterns, line)
	}
	return patterns, nil
}
