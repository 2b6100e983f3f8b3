// Package arch checks the source tree against the rules in ARCHITECTURE.md: the table of
// packages, the direction of imports, the size of files and functions, and the paths that
// documents mention. It names what a new kind of resource still lacks, and holds the table
// of published incidents to the tests that guard against them. It reads source text and
// runs `go list` for transitive dependencies. It does not test what packages do.
package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/landwaiter/landwaiter"
)

// source is one Go file, whatever its build constraints.
type source struct {
	path      string // from the root, with slashes
	pkg       string // its folder, which is its import path within the module
	test      bool
	generated bool
	lines     int
	imports   []string
	syntax    *ast.File
	positions *token.FileSet
}

// tree lists every Go file of the module.
type tree []source

// readTree parses the tree once for all tests.
func readTree(t *testing.T) tree {
	t.Helper()
	found, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, found, "no Go file below %s", root)
	return found
}

var parsed = sync.OnceValues(func() (found tree, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() && relative != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "bin", "node_modules"}, entry.Name())) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parseSource(filepath.ToSlash(relative), content)
		found = append(found, file)
		return err
	})
	return found, err
})

func parseSource(name string, content []byte) (source, error) {
	positions := token.NewFileSet()
	syntax, err := parser.ParseFile(positions, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	s := source{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax), lines: bytes.Count(content, []byte("\n")), syntax: syntax, positions: positions}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, imported)
	}
	return s, nil
}

// shipped returns the files that are part of a program: no tests.
func (t tree) shipped() tree {
	return slices.DeleteFunc(slices.Clone(t), func(s source) bool { return s.test })
}

// written returns the shipped files that are not generated.
func (t tree) written() tree {
	return slices.DeleteFunc(t.shipped(), func(s source) bool { return s.generated })
}

// imports maps each package to what its shipped files import.
func (t tree) imports() map[string][]string {
	sets := map[string]map[string]bool{}
	for _, s := range t.shipped() {
		if sets[s.pkg] == nil {
			sets[s.pkg] = map[string]bool{}
		}
		for _, imported := range s.imports {
			sets[s.pkg][imported] = true
		}
	}
	lists := map[string][]string{}
	for pkg, set := range sets {
		lists[pkg] = slices.Sorted(maps.Keys(set))
	}
	return lists
}

// own returns the path within the module, and whether there is one.
func own(imported string) (string, bool) {
	return strings.CutPrefix(imported, module+"/")
}

// below reports whether a path is a folder or lies in it.
func below(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
