package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged is what the program can log: messages with "…" for what varies, and fields.
type logged struct{ messages, fields map[string]bool }

// levels are the methods of the logger that write a line, and the number of the message
// among their arguments.
func levels() map[string]int {
	return map[string]int{"Debug": 0, "Debugf": 0, "Info": 0, "Infof": 0, "Warn": 0, "Warnf": 0, "Error": 0, "Errorf": 0, "Log": 1, "Logf": 1}
}

// loggedBy reads the source of the packages that log.
func loggedBy(t *testing.T) logged {
	t.Helper()
	l := logged{map[string]bool{}, map[string]bool{}}
	files := map[string][]*ast.File{} // by package
	for _, folder := range []string{"cmd", "pkg"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[filepath.Dir(path)] = append(files[filepath.Dir(path)], file)
			return nil
		}))
	}
	for path, all := range files {
		if slices.ContainsFunc(all, importsLogrus) {
			for _, file := range all {
				l.read(t, path, file)
			}
		}
	}
	return l
}

func importsLogrus(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"github.com/sirupsen/logrus"` })
}

func (l logged) read(t *testing.T, path string, file *ast.File) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			l.call(t, path, n)
		case *ast.CompositeLit: // logrus.Fields{"a": …}
			if selector, ok := n.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Fields" {
				for _, element := range n.Elts {
					l.field(t, path, element.(*ast.KeyValueExpr).Key) //nolint:forcetypeassert // a map has nothing else
				}
			}
		case *ast.AssignStmt: // fields["a"] = …
			for _, left := range n.Lhs {
				if index, ok := left.(*ast.IndexExpr); ok {
					if name, ok := index.X.(*ast.Ident); ok && name.Name == "fields" {
						l.field(t, path, index.Index)
					}
				}
			}
		}
		return true
	})
}

func (l logged) call(t *testing.T, path string, call *ast.CallExpr) {
	t.Helper()
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch name := selector.Sel.Name; name {
	case "WithField":
		l.field(t, path, call.Args[0])
	case "WithError":
		l.fields["error"] = true
	default:
		if at, ok := levels()[name]; ok && isLog(selector.X) {
			l.messages[text(t, path, call.Args[at])] = true
		}
	}
}

func (l logged) field(t *testing.T, path string, name ast.Expr) {
	t.Helper()
	literal, ok := name.(*ast.BasicLit)
	require.True(t, ok, "%s: the name of a field is no literal: docs/operate/logs.md cannot have it", path)
	l.fields[strings.Trim(literal.Value, `"`)] = true
}

// isLog reports whether an expression is a logger: log, x.log, what its With… return, or
// what logOf returns.
func isLog(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log" || x.Name == "logger" || x.Name == "logOf"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log" || x.Sel.Name == "logOf" || strings.HasPrefix(x.Sel.Name, "With") && isLog(x.X)
	case *ast.CallExpr:
		return isLog(x.Fun)
	}
	return false
}

// verb is what varies in a format.
var verb = regexp.MustCompile(`%[a-z]`)

// text is the message that an expression makes, with "…" for what varies.
func text(t *testing.T, path string, x ast.Expr) string {
	t.Helper()
	switch x := x.(type) {
	case *ast.BasicLit:
		plain, err := strconv.Unquote(x.Value)
		require.NoError(t, err)
		return verb.ReplaceAllString(plain, "…")
	case *ast.BinaryExpr:
		begin, end := text(t, path, x.X), "…"
		if literal, ok := x.Y.(*ast.BasicLit); ok {
			end = text(t, path, literal)
		}
		return begin + end
	}
	t.Errorf("%s: a message does not begin with a literal: docs/operate/logs.md cannot have it", path)
	return ""
}

// column returns what stands in backquotes in the first column of a document's tables
// with a heading.
func column(t *testing.T, name, heading string) []string {
	t.Helper()
	_, section, found := strings.Cut(read(t, name), heading)
	require.True(t, found, "%s has no table %s", name, heading)
	section, _, _ = strings.Cut(section, "\n\n")
	var all []string
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			all = append(all, quoted[1])
		}
	}
	require.NotEmpty(t, all)
	slices.Sort(all)
	return all
}

func TestEveryLogMessageAndFieldIsOnItsPage(t *testing.T) {
	l := loggedBy(t)
	require.Greater(t, len(l.messages), 15)
	require.Equal(t, slices.Sorted(maps.Keys(l.messages)), column(t, "docs/operate/logs.md", "| `msg` | level | when |"),
		"expected: the code; actual: docs/operate/logs.md")
	require.Equal(t, slices.Sorted(maps.Keys(l.fields)), column(t, "docs/operate/logs.md", "| field | in | meaning |"),
		"expected: the code; actual: docs/operate/logs.md")
}

// Attributes of outcomes are made of the outcome's name.
func TestEveryAttributeOfATraceIsOnItsPage(t *testing.T) {
	source := read(t, "pkg/server/tracing/spans.go")
	found := map[string]bool{}
	for _, literal := range regexp.MustCompile(`"((?:landwaiter|http)\.[a-z_.]+)"`).FindAllStringSubmatch(source, -1) {
		found[literal[1]] = true
	}
	for _, outcome := range []string{"allowed", "unverified", "warned", "excepted", "denied", "invalid", "undecided"} {
		found["landwaiter."+outcome] = true
	}
	delete(found, "landwaiter.")
	require.Equal(t, slices.Sorted(maps.Keys(found)), column(t, "docs/operate/traces.md", "| attribute | of | meaning |"),
		"expected: the code; actual: docs/operate/traces.md")
}

// The stages that the engine and the caches have are spans, and values of a label.
func TestEveryStageIsOnThePagesOfTracesAndMetrics(t *testing.T) {
	found := map[string]bool{}
	for _, folder := range []string{"pkg/decide/verify", "pkg/remote/cache"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, stage := range regexp.MustCompile(`(?:race\.start\(|StartStage\(ctx, |Stage\{Name: |Stage[A-Z][a-z]+ = )"([a-z]+)"`).
				FindAllStringSubmatch(read(t, strings.TrimPrefix(file, root+"/")), -1) {
				found[stage[1]] = true
			}
		}
	}
	require.Greater(t, len(found), 5)
	spans := column(t, "docs/operate/traces.md", "| span | under | what |")
	_, row, _ := strings.Cut(read(t, "docs/reference/metrics.md"), "\n| `stage` of an image |")
	row, _, _ = strings.Cut(row, "\n")
	for stage := range found {
		require.Contains(t, spans, stage)
		require.Contains(t, row, "`"+stage+"`")
	}
}
