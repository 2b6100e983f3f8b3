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

// everyReason returns the words of pkg/decide/policy/reason.go.
func everyReason(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg/decide/policy/reason.go"), nil, 0)
	require.NoError(t, err)
	var words []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			word, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.Equal(t, "Reason"+word, name.Name)
			words = append(words, word)
		}
		return false
	})
	require.Greater(t, len(words), 50)
	return words
}

func TestEveryReasonIsExplainedOnceWithWhatToDo(t *testing.T) {
	_, table, found := strings.Cut(read(t, "docs/operate/troubleshooting.md"), "\n## Reasons\n")
	require.True(t, found)
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.+) \\| (.+) \\|$").FindAllStringSubmatch(table, -1) {
		explained = append(explained, row[1])
	}
	require.ElementsMatch(t, everyReason(t), explained, "expected: pkg/decide/policy/reason.go; actual: docs/operate/troubleshooting.md")
}
