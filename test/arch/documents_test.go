package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	maxReadmeLines = 150
	maxMakeTargets = 20
)

var (
	// ownPath matches a path of this repository in running text. A path with a prefix
	// belongs to another repository.
	ownPath    = regexp.MustCompile(`(?:^|[^\w/.-])((?:api|cmd|config|pkg|test)/[\w./-]*\w)`)
	localLink  = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)\s]*)?\)`)
	makeUse    = regexp.MustCompile("`make ([a-z0-9]+)[^`]*`")
	makeTarget = regexp.MustCompile(`(?m)^([a-z0-9]+):.*$`)
)

// documents returns the texts that describe the current tree. CHANGELOG.md is not one:
// it describes earlier trees.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err == nil && !entry.IsDir() && filepath.Ext(name) == ".md" {
			relative, relErr := filepath.Rel(root, name)
			names = append(names, relative)
			return relErr
		}
		return err
	})
	require.NoError(t, err)
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	return texts
}

func mentioned(pattern *regexp.Regexp, text string) []string {
	var found []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

func TestDocumentsNameOnlyWhatExists(t *testing.T) {
	for name, text := range documents(t) {
		for _, p := range mentioned(ownPath, text) {
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(p)))
			require.NoError(t, err, "%s names %s", name, p)
		}
		for _, p := range mentioned(localLink, text) {
			_, err := os.Stat(filepath.Join(root, filepath.Dir(name), filepath.FromSlash(p)))
			require.NoError(t, err, "%s links to %s", name, p)
		}
	}
}

func TestFindsPathsInRunningText(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"in code":              {"see `pkg/formats/image`.", []string{"pkg/formats/image"}},
		"at the end":           {"in pkg/formats/image.", []string{"pkg/formats/image"}},
		"at the start":         {"cmd/landwaiter is wiring", []string{"cmd/landwaiter"}},
		"file":                 {"(pkg/decide/verify/engine.go)", []string{"pkg/decide/verify/engine.go"}},
		"of somebody else":     {"oras.land/oras-go/pkg/x and a-pkg/y", nil},
		"of the command's use": {"go build ./cmd/landwaiter", nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, mentioned(ownPath, c.text))
		})
	}
}

func TestMakefileIsShortAndExplainsItself(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		targets[match[1]] = true
		require.Contains(t, match[0], " ## ", "make %s has no help", match[1])
	}
	require.LessOrEqual(t, len(targets), maxMakeTargets)
	for name, document := range documents(t) {
		for _, target := range mentioned(makeUse, document) {
			require.True(t, targets[target], "%s names make %s", name, target)
		}
	}
}

func TestReadmeStaysShort(t *testing.T) {
	require.LessOrEqual(t, strings.Count(documents(t)["README.md"], "\n"), maxReadmeLines)
}
