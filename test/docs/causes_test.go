package docs

import (
	"fmt"
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

	"github.com/landwaiter/landwaiter/test/kit/generated"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// refusal is one way in which evidence is refused: the sentence that people read, with "…" for what varies, and what
// they are told to do.
type refusal struct{ reason, message, fix string }

// makers are the functions that make a refusal, with where their reason, message and fix are among the arguments.
func makers() map[string][3]int {
	return map[string][3]int{"Refuse": {0, 1, 2}, "Permanent": {0, 1, -1}, "PermanentWith": {0, 1, 2}, "Inconclusive": {0, 1, -1}}
}

// refusals finds every refusal of the packages that judge evidence.
type refusals struct {
	t *testing.T
	// own are the functions of a package that make a refusal of what they are given: calls of them are found as calls of
	// the makers are. Their parameters stand for the arguments.
	own   map[string]*ast.FuncDecl
	found map[refusal]bool
}

func (r *refusals) read(folder string) {
	r.t.Helper()
	fset, files := token.NewFileSet(), map[string][]*ast.File{}
	require.NoError(r.t, filepath.WalkDir(filepath.Join(suite.Root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		files[filepath.Dir(name)] = append(files[filepath.Dir(name)], file)
		return err
	}))
	for _, parsed := range files {
		r.own = map[string]*ast.FuncDecl{}
		for _, file := range parsed {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && r.passesOn(f) {
					r.own[f.Name.Name] = f
				}
			}
		}
		for _, file := range parsed {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && r.own[f.Name.Name] == nil && makers()[f.Name.Name] == [3]int{} {
					r.inside(f.Body, nil)
				}
			}
		}
	}
}

// passesOn reports whether a function refuses with a parameter of its own, message or what, in the message.
func (r *refusals) passesOn(f *ast.FuncDecl) bool {
	names := parameters(f)
	passes := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if at, made := makers()[called(call)]; made && len(call.Args) > at[1] {
				ast.Inspect(call.Args[at[1]], func(n ast.Node) bool {
					id, ok := n.(*ast.Ident)
					passes = passes || ok && (id.Name == "message" || id.Name == "what") && slices.Contains(names, id.Name)
					return true
				})
			}
		}
		return true
	})
	return passes
}

func parameters(f *ast.FuncDecl) (names []string) {
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// called is the name of a called function, without its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// inside adds the refusals that a body makes, where names have values.
func (r *refusals) inside(body ast.Node, values map[string]string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if at, ok := makers()[called(n)]; ok && len(n.Args) > at[1] {
				found := refusal{reason: reasonOf(n.Args[at[0]]), message: said(n.Args[at[1]], values)}
				if at[2] >= 0 && at[2] < len(n.Args) {
					found.fix = said(n.Args[at[2]], values)
				}
				r.add(found)
			} else if f := r.own[called(n)]; f != nil && values == nil {
				given := map[string]string{}
				for i, name := range parameters(f) {
					if i < len(n.Args) {
						given[name] = said(n.Args[i], values)
					}
				}
				r.inside(f.Body, given)
			}
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Finding" {
				found := refusal{}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						switch fmt.Sprint(kv.Key) {
						case "Reason":
							found.reason = reasonOf(kv.Value)
						case "Message":
							found.message = said(kv.Value, values)
						case "Remediation":
							found.fix = said(kv.Value, values)
						}
					}
				}
				if found.reason != "" {
					r.add(found)
				}
			}
		}
		return true
	})
}

func (r *refusals) add(found refusal) {
	found.message = regexp.MustCompile(`(?:…\s*)+…`).ReplaceAllString(found.message, "…")
	if strings.Trim(found.message, "…: ") != "" { // else it is said where it is made
		r.found[found] = true
	}
}

func reasonOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return strings.TrimPrefix(s.Sel.Name, "Reason")
	}
	return ""
}

var format = regexp.MustCompile(`%[-+#.*0-9]*[a-zA-Z]`)

// said is what an expression says, with "…" for what is not known here.
func said(e ast.Expr, values map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return said(e.X, values) + said(e.Y, values)
	case *ast.Ident:
		if text, ok := values[e.Name]; ok {
			return text
		}
	case *ast.CallExpr:
		switch name := called(e); {
		case (name == "Sprintf" || name == "Errorf") && len(e.Args) > 0:
			next := 0
			return format.ReplaceAllStringFunc(said(e.Args[0], values), func(verb string) string {
				next += 1 + strings.Count(verb, "*")
				if next < len(e.Args) {
					return strings.ReplaceAll(said(e.Args[next], values), "%", "%%")
				}
				return "…"
			})
		case name == "New" && len(e.Args) == 1:
			return said(e.Args[0], values)
		}
	}
	return "…"
}

// Every way in which evidence is refused stands on the page of denials, as the code says it, so that whoever adds one
// sees it beside the others.
func TestEveryCauseOfARefusalIsOnThePageAndUpToDate(t *testing.T) {
	all := &refusals{t: t, found: map[refusal]bool{}}
	all.read("pkg/evidence")
	all.read("pkg/decide")
	require.Greater(t, len(all.found), 100)
	var rows strings.Builder
	rows.WriteString("| reason | message | fix |\n|---|---|---|\n")
	for _, c := range slices.SortedFunc(maps.Keys(all.found), func(a, b refusal) int {
		return strings.Compare(a.reason+"\x00"+a.message+"\x00"+a.fix, b.reason+"\x00"+b.message+"\x00"+b.fix)
	}) {
		reason := "by its cause"
		if c.reason != "" {
			reason = fmt.Sprintf("[%s](reasons.md#%s)", c.reason, strings.ToLower(c.reason))
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", reason, generated.Cell(c.message), generated.Cell(c.fix))
	}
	const begin, end = "<!-- generated by make generate: causes -->", "<!-- end of the causes -->"
	require.NoError(t, generated.Check(filepath.Join(suite.Root, "docs", "reference", "denials.md"), begin, end, rows.String()))
}
