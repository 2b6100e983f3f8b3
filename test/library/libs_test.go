package library

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../library"

// pasted matches the first line of a library in a template.
var pasted = regexp.MustCompile(`^( *)- \| # (lib/[a-z]+\.rego)$`)

// paste writes the libraries that a template names below their names.
func paste(template string, read func(name string) (string, error)) (string, error) {
	var made strings.Builder
	indent := -1
	for line := range strings.Lines(template) {
		if indent >= 0 && (strings.TrimSpace(line) == "" || len(line)-len(strings.TrimLeft(line, " ")) > indent) {
			continue
		}
		indent = -1
		made.WriteString(line)
		match := pasted.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if match == nil {
			continue
		}
		indent = len(match[1])
		text, err := read(match[2])
		if err != nil {
			return "", fmt.Errorf("paste a library: %w", err)
		}
		for line := range strings.Lines(text) {
			if line != "\n" {
				made.WriteString(match[1] + "    ")
			}
			made.WriteString(line)
		}
	}
	return made.String(), nil
}

func TestTheLibrariesInTemplatesAreUpToDate(t *testing.T) {
	paths, err := filepath.Glob(root + "/*/template.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, name := range paths {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		made, err := paste(string(text), func(name string) (string, error) {
			text, err := os.ReadFile(filepath.Join(root, name))
			return string(text), err
		})
		require.NoError(t, err, name)
		if os.Getenv("LANDWAITER_UPDATE") != "" {
			require.NoError(t, os.WriteFile(name, []byte(made), 0o600))
			continue
		}
		require.Equal(t, made, string(text), "%s: run make generate", name)
	}
}

func TestPastingReplacesWhatWasPasted(t *testing.T) {
	read := func(name string) (string, error) { return "package " + name + "\n\na := 1\n", nil }
	const empty = "x:\n  libs:\n    - | # lib/a.rego\n    - | # lib/b.rego\ny: 1\n"
	const full = "x:\n  libs:\n    - | # lib/a.rego\n        package lib/a.rego\n\n        a := 1\n    - | # lib/b.rego\n        package " +
		"lib/b.rego\n\n        a := 1\ny: 1\n"
	for _, text := range []string{empty, full, strings.Replace(full, "a := 1", "a := 2\n\n\n", 1)} {
		made, err := paste(text, read)
		require.NoError(t, err)
		require.Equal(t, full, made)
	}
}
