package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// leastCoverage is how much of a licence file must be a known licence, in percent. The rest is
// a copyright line or a preamble. pkg.go.dev asks for the same.
const leastCoverage = 75

// licenceFile matches the names of files with a licence. A file such as license.go is code.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)(\.(txt|md|mit)|[-.](apache|mit|bsd)[-.0-9a-z]*)?$`)

// withoutFile returns the licences of modules whose Go module has no licence file, and where their
// authors state it.
func withoutFile() map[string]string {
	return map[string]string{
		"github.com/openreports/reports-api": "Apache-2.0", // the header of each of its files
	}
}

// dependency is a module that a program contains.
type dependency struct {
	Path, Dir string
	folders   map[string]bool // of its packages that are compiled in
}

// linked returns the modules of the programs of a release, for every system and with and without
// the clouds, and the public CAs of images.
func linked(t *testing.T) []*dependency {
	t.Helper()
	modules := map[string]*dependency{}
	for _, build := range []struct{ system, tags string }{
		{"linux", "kustomize_disable_go_plugin_support,grpcnotrace,aws,azure,gcp"},
		{"darwin", "kustomize_disable_go_plugin_support,grpcnotrace"},
	} {
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", build.tags, "-json=Dir,Module",
			"./cmd/...", "golang.org/x/crypto/x509roots/fallback/bundle")
		command.Dir, command.Env = root, append(os.Environ(), "GOOS="+build.system, "GOARCH=amd64", "CGO_ENABLED=0")
		var stderr bytes.Buffer
		command.Stderr = &stderr
		output, err := command.Output()
		require.NoError(t, err, "go list: %s", &stderr)
		for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
			var found struct {
				Dir    string
				Module *struct {
					Path, Dir string
					Main      bool
				}
			}
			if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
				break
			} else if require.NoError(t, err); found.Module == nil || found.Module.Main {
				continue
			}
			if modules[found.Module.Path] == nil {
				modules[found.Module.Path] = &dependency{found.Module.Path, found.Module.Dir, map[string]bool{}}
			}
			modules[found.Module.Path].folders[found.Dir] = true
		}
	}
	require.Greater(t, len(modules), 100)
	return slices.SortedFunc(maps.Values(modules), func(a, b *dependency) int { return strings.Compare(a.Path, b.Path) })
}

// licences returns the SPDX identifiers of a module: for each of its packages, those of the nearest
// folder with a licence file.
func (d *dependency) licences() ([]string, error) {
	ids := map[string]bool{}
	for folder := range d.folders {
		found, err := nearest(folder, d.Dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", d.Path, err)
		}
		for _, id := range found {
			ids[id] = true
		}
	}
	if stated, ok := withoutFile()[d.Path]; ok && len(ids) == 0 {
		return []string{stated}, nil
	} else if ok {
		return nil, fmt.Errorf("%s has a licence file now", d.Path)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s has no licence file", d.Path)
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// nearest returns the licences of a folder, or of the first one above it that has some.
func nearest(folder, top string) ([]string, error) {
	for ; ; folder = filepath.Dir(folder) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		var found []string
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			ids, err := identify(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", entry.Name(), err)
			}
			found = append(found, ids...)
		}
		if len(found) > 0 || folder == top {
			return found, nil
		}
	}
}

// identify returns the SPDX identifiers of a text of a licence.
func identify(text []byte) ([]string, error) {
	coverage := licensecheck.Scan(text)
	if coverage.Percent < leastCoverage {
		return nil, fmt.Errorf("only %.0f %% of it is a known licence", coverage.Percent)
	}
	var ids []string
	for _, match := range coverage.Match {
		if !match.IsURL && !slices.Contains(ids, match.ID) {
			ids = append(ids, match.ID)
		}
	}
	return ids, nil
}

// notices returns the text of the module's NOTICE file, which its licence asks to pass on.
func (d *dependency) notices(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"NOTICE", "NOTICE.txt"} {
		if text, err := os.ReadFile(filepath.Join(d.Dir, name)); err == nil {
			lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n")
			for i, line := range lines {
				lines[i] = strings.TrimRight(line, " \t")
			}
			return strings.Join(lines, "\n")
		}
	}
	return ""
}

// siteLicences returns the npm packages that the site is built with and their licences, as its lock
// file states them.
func siteLicences(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/package-lock.json"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	var lock struct {
		Packages map[string]struct{ License string }
	}
	require.NoError(t, json.Unmarshal(text, &lock))
	lines := map[string]bool{}
	for path, entry := range lock.Packages {
		if _, name, ok := cutLast(path, "node_modules/"); ok {
			require.NotEmpty(t, entry.License, "%s states no licence", name)
			lines[fmt.Sprintf("%-64s %s\n", name, entry.License)] = true
		}
	}
	return "\nThe documentation site is built with these npm packages. No program and no image has them.\n\n" + strings.Join(slices.Sorted(maps.Keys(lines)), "")
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

func TestNoticeIsUpToDate(t *testing.T) {
	var text, notices strings.Builder
	text.WriteString(`Landwaiter
Copyright The Landwaiter Authors

Licensed under the Apache License, Version 2.0; see LICENSE.

This file is generated by make generate. The programs, and the container images, contain the Go
standard library (BSD-3-Clause) and packages of these Go modules. The identifiers are those of
https://spdx.org/licenses. The SBOM of each release has the versions.

`)
	for _, module := range linked(t) {
		ids, err := module.licences()
		require.NoError(t, err)
		fmt.Fprintf(&text, "%-64s %s\n", module.Path, strings.Join(ids, ", "))
		if notice := module.notices(t); notice != "" {
			fmt.Fprintf(&notices, "\n=== %s\n\n%s\n", module.Path, notice)
		}
	}
	text.WriteString(siteLicences(t))
	text.WriteString("\nThese modules come with a notice of their own:\n" + notices.String())
	require.NoError(t, generated.Check(filepath.Join(root, "NOTICE"), "", "", text.String()))
}

func TestALicenceThatNobodyKnowsIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"none":           "",
		"own words":      "You may use this on Tuesdays, if you send the author a postcard.",
		"only a mention": "This program is under the MIT License. " + strings.Repeat("It also asks for what no known licence asks. ", 20),
	} {
		_, err := identify([]byte(text))
		require.Error(t, err, name)
	}
	ids, err := identify([]byte(read(t, "LICENSE")))
	require.NoError(t, err)
	require.Equal(t, []string{"Apache-2.0"}, ids)
	for name, known := range map[string]bool{"LICENSE": true, "License.txt": true, "LICENSE.MIT": true, "LICENSE-APACHE-2.0.txt": true, "COPYING": true,
		"license.go": false, "LICENSE.docs": false} {
		require.Equal(t, known, licenceFile.MatchString(name), name)
	}
}
