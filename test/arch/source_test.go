package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	maxFileLines     = 400
	maxFunctionLines = 70 // between the braces, as golangci-lint's funlen counts
)

func (s source) line(pos token.Pos) int { return s.positions.Position(pos).Line }

func (s source) at(pos token.Pos, what string) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.line(pos), what)
}

// functions calls visit for every function and method with a body.
func (s source) functions(visit func(*ast.FuncDecl)) {
	for _, decl := range s.syntax.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok && function.Body != nil {
			visit(function)
		}
	}
}

// long lists functions with too many lines.
func (s source) long() []string {
	var found []string
	s.functions(func(f *ast.FuncDecl) {
		if lines := s.line(f.Body.End()) - s.line(f.Pos()) - 1; lines > maxFunctionLines {
			found = append(found, s.at(f.Pos(), fmt.Sprintf("%s has %d lines, at most %d", f.Name.Name, lines, maxFunctionLines)))
		}
	})
	return found
}

// inits lists func init, which runs without being called.
func (s source) inits() []string {
	var found []string
	s.functions(func(f *ast.FuncDecl) {
		if f.Recv == nil && f.Name.Name == "init" {
			found = append(found, s.at(f.Pos(), "func init"))
		}
	})
	return found
}

// undocumented lists exported names without a comment. A comment on a group of
// constants, variables or types covers the whole group.
func (s source) undocumented() []string {
	var found []string
	for _, decl := range s.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && receiverIsExported(d) {
				found = append(found, s.at(d.Pos(), d.Name.Name+" has no comment"))
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				continue
			}
			for _, spec := range d.Specs {
				found = append(found, s.undocumentedSpec(spec)...)
			}
		}
	}
	return found
}

func (s source) undocumentedSpec(spec ast.Spec) []string {
	var found []string
	switch d := spec.(type) {
	case *ast.TypeSpec:
		if d.Name.IsExported() && d.Doc == nil && d.Comment == nil {
			found = append(found, s.at(d.Pos(), d.Name.Name+" has no comment"))
		}
	case *ast.ValueSpec:
		for _, name := range d.Names {
			if name.IsExported() && d.Doc == nil && d.Comment == nil {
				found = append(found, s.at(name.Pos(), name.Name+" has no comment"))
			}
		}
	}
	return found
}

func receiverIsExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	receiver := f.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}

func TestFilesAndFunctionsStayShort(t *testing.T) {
	var found []string
	for _, s := range readTree(t).written() {
		if s.lines > maxFileLines {
			found = append(found, fmt.Sprintf("%s has %d lines, at most %d", s.path, s.lines, maxFileLines))
		}
		found = append(found, s.long()...)
	}
	require.Empty(t, found)
}

func TestNothingRunsBeforeMain(t *testing.T) {
	var found []string
	for _, s := range readTree(t) {
		found = append(found, s.inits()...)
	}
	require.Empty(t, found)
}

func TestEverythingExportedIsExplained(t *testing.T) {
	var found []string
	explained := map[string]bool{}
	for _, s := range readTree(t) {
		if s.syntax.Doc != nil {
			explained[s.pkg] = true
		} else if !explained[s.pkg] {
			explained[s.pkg] = false
		}
		if !s.test && !s.generated {
			found = append(found, s.undocumented()...)
		}
	}
	for pkg, ok := range explained {
		if !ok {
			found = append(found, pkg+" has no package comment")
		}
	}
	require.Empty(t, found)
}

func TestRefusesSourceAgainstTheRules(t *testing.T) {
	long := "// F is long.\nfunc F() {\n"
	for range maxFunctionLines + 1 {
		long += "\t_ = 0\n"
	}
	for name, c := range map[string]struct {
		body  string
		count int
	}{
		"nothing":                        {"", 0},
		"init":                           {"func init() {}", 1},
		"method called init":             {"type t struct{}\nfunc (t) init() {}", 0},
		"long function":                  {long + "}", 1},
		"exported function":              {"func F() {}", 1},
		"exported method":                {"// T is.\ntype T[A any] struct{}\nfunc (*T[A]) M() {}", 1},
		"method of an unexported type":   {"type t struct{}\nfunc (t) String() string { return \"\" }", 0},
		"exported type":                  {"type T int", 1},
		"exported constants in a group":  {"// Colours.\nconst (\n\tRed = 1\n\tBlue = 2\n)", 0},
		"exported constant of no group":  {"const (\n\tRed = 1 // stop\n\tBlue = 2\n)", 1},
		"exported variable, unexplained": {"var A, B = 1, 2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseSource("pkg/x/x.go", []byte("package x\n\n"+c.body+"\n"))
			require.NoError(t, err)
			found := append(append(s.inits(), s.long()...), s.undocumented()...)
			require.Len(t, found, c.count, "%v", found)
		})
	}
}
