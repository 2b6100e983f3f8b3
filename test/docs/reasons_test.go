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
	text := read(t, "docs/reference/reasons.md")
	var explained []string
	for _, found := range regexp.MustCompile(`(?m)^### (\w+)\n\n.+\n\nFix: .+$`).FindAllStringSubmatch(text, -1) {
		explained = append(explained, found[1])
	}
	require.Len(t, explained, strings.Count(text, "\n### "), "a reason has no cause, or no line that begins with Fix:")
	require.ElementsMatch(t, everyReason(t), explained, "expected: pkg/decide/policy/reason.go; actual: docs/reference/reasons.md")
}
