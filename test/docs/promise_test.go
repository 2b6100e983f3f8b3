package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// constants returns the constants of the Go files that match a pattern, whose names begin with
// a prefix.
func constants(t *testing.T, pattern, prefix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, pattern))
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, constant := range spec.Names {
				if i < len(spec.Values) && strings.HasPrefix(constant.Name, prefix) {
					if literal, ok := spec.Values[i].(*ast.BasicLit); ok {
						found[constant.Name] = strings.Trim(literal.Value, `"`)
					}
				}
			}
			return true
		})
	}
	require.NotEmpty(t, found, pattern)
	return found
}

// A type of condition that the page does not name is promised to nobody.
func TestThePromiseNamesEveryTypeOfConditionAndEachHasATable(t *testing.T) {
	promise := read(t, "docs/reference/api-promise.md")
	for _, condition := range constants(t, "api/v1beta1/*.go", "Condition") {
		require.Contains(t, promise, "`"+condition+"`")
		tableOf(t, read(t, "docs/reference/conditions.md"), condition)
	}
}

func TestEveryExitCodeIsInTheTable(t *testing.T) {
	_, table, found := strings.Cut(read(t, "docs/reference/cli.md"), "## Exit codes\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	codes := map[string]bool{}
	for name, code := range constants(t, "cmd/internal/program/program.go", "Exit") {
		_, err := strconv.Atoi(code)
		require.NoError(t, err, name)
		codes[code] = true
		require.Regexp(t, `(?m)^\| `+code+` \|`, table, name)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(table, -1) {
		require.True(t, codes[row[1]], "no command exits with %s", row[1])
	}
}
