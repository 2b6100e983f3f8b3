package arch

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inReadme are the programs that README.md says make test needs, and the shell of POSIX.
func inReadme() []string { return []string{"go", "git", "bash", "sh"} }

// starters are the functions of test/kit that start programs which make test does not have, by the
// beginning of their names.
func starters() map[string][]string {
	return map[string][]string{
		"cluster": {"Start"},
		"suite":   {"ForTest", "Start", "Tool", "MustTool"},
		"browser": {""},
	}
}

// untagged reports whether make test compiles a file, as far as it can: it sets no build tag, and
// leaves out what needs a C compiler.
func (s source) untagged() bool {
	for _, group := range s.syntax.Comments {
		for _, comment := range group.List {
			if comment.Pos() > s.syntax.Package || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expression, err := constraint.Parse(comment.Text)
			return err == nil && expression.Eval(func(tag string) bool { return slices.Contains([]string{"linux", "amd64", "cgo"}, tag) })
		}
	}
	return true
}

// starts returns what a test file starts besides the programs of README.md.
func (s source) starts() (found []string) {
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		if at, starts := map[string]int{"Command": 0, "LookPath": 0, "CommandContext": 1}[selector.Sel.Name]; starts && pkg.Name == "exec" {
			if program := literal(call.Args[at]); !slices.Contains(inReadme(), program) {
				found = append(found, s.at(call.Pos(), fmt.Sprintf("starts %q", program)))
			}
		}
		for _, beginning := range starters()[pkg.Name] {
			if strings.HasPrefix(selector.Sel.Name, beginning) {
				found = append(found, s.at(call.Pos(), "calls "+pkg.Name+"."+selector.Sel.Name))
			}
		}
		return true
	})
	return found
}

// literal returns the text of an argument, and an empty one of what is not written there.
func literal(arg ast.Expr) string {
	if sum, ok := arg.(*ast.BinaryExpr); ok {
		return literal(sum.X) + literal(sum.Y)
	}
	text, ok := arg.(*ast.BasicLit)
	if !ok {
		return ""
	}
	value, err := strconv.Unquote(text.Value)
	if err != nil {
		return ""
	}
	return value
}

// A machine has what README.md names, so a test that needs more passes only where somebody
// installed it: it belongs to make e2e. The first steps of .ci/run have nothing else either.
func TestMakeTestStartsOnlyWhatTheReadmeNames(t *testing.T) {
	files := 0
	for _, s := range readTree(t) {
		require.NotContains(t, s.imports, "C", "%s needs a C compiler", s.path)
		if !s.test || !s.untagged() || below(s.pkg, "test/library/gator") {
			continue
		}
		files++
		require.Empty(t, s.starts())
	}
	require.Greater(t, files, 300)
}

func TestATestThatStartsAnotherProgramIsFound(t *testing.T) {
	for text, want := range map[string]int{
		`cluster.StartRedis(ctx, dir)`:                           1,
		`suite.MustTool(t, suite.Landwaiter)`:                    1,
		`exec.Command("redis-server", "--port", "0")`:            1,
		`exec.LookPath("gcc")`:                                   1,
		`exec.CommandContext(t.Context(), program, "-o", "out")`: 1,
		`exec.CommandContext(t.Context(), program, "go")`:        1,
		`exec.CommandContext(t.Context(), "go", "list")`:         0,
		`suite.Eventually(t, nil)`:                               0,
	} {
		for tag, compiled := range map[string]bool{"": true, "//go:build e2e\n\n": false, "//go:build !e2e && !nightly\n\n": true, "//go:build cgo\n\n": true} {
			s, err := parseSource("x_test.go", []byte(tag+"package x\n\nfunc f() { "+text+" }\n"))
			require.NoError(t, err)
			require.Len(t, s.starts(), want, text)
			require.Equal(t, compiled, s.untagged(), tag)
		}
	}
}
