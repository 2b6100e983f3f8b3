package arch

import (
	"go/ast"
	"path"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages whose Checkers verify evidence. Their helpers report success only by a
// nil error and failure by an error, never by a Finding.
var checkerPackages = []string{"pkg/evidence/cosign", "pkg/evidence/notation"}

const (
	findings  = "pkg/decide/policy" // has Finding and Valid
	refusals  = "pkg/decide/verify" // has FindingOf
	makeValid = "valid"             // the function that makes Valid findings
	answer    = "Check"             // the method of a Checker
)

// strayFindings lists the names that only the end of a check may use: policy.Finding,
// which is the result of a Checker's Check and of the one function valid, policy.Valid,
// and verify.FindingOf. Aliases of the two packages are followed.
func (s source) strayFindings() []string {
	local := map[string]string{} // local name of an import: its folder
	var found []string
	for _, spec := range s.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		name, ours := own(imported)
		if err != nil || !ours || name != findings && name != refusals {
			continue
		}
		alias := path.Base(name)
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		if alias == "." {
			found = append(found, s.at(spec.Pos(), "dot import of "+name))
		}
		local[alias] = name
	}
	for _, decl := range s.syntax.Decls {
		function, _ := decl.(*ast.FuncDecl)
		ast.Inspect(decl, func(n ast.Node) bool {
			if function != nil && n == function.Type && mayAnswer(function) {
				return false // its results may be findings
			}
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := selector.X.(*ast.Ident)
			if ok && stray(local[pkg.Name], selector.Sel.Name, function) {
				found = append(found, s.at(n.Pos(), pkg.Name+"."+selector.Sel.Name))
			}
			return true
		})
	}
	return found
}

// mayAnswer reports whether a function may return a Finding.
func mayAnswer(function *ast.FuncDecl) bool {
	return makesValid(function) || function.Recv != nil && function.Name.Name == answer
}

func makesValid(function *ast.FuncDecl) bool {
	return function != nil && function.Recv == nil && function.Name.Name == makeValid
}

// stray reports whether the body of function must not use a name of pkg.
func stray(pkg, name string, function *ast.FuncDecl) bool {
	switch {
	case pkg == findings && (name == "Finding" || name == "Valid"):
		return !makesValid(function)
	case pkg == refusals && name == "FindingOf":
		return function == nil || !mayAnswer(function)
	}
	return false
}

func TestOnlyTheEndOfACheckMakesFindings(t *testing.T) {
	makers := map[string]int{}
	var found []string
	for _, s := range readTree(t).written() {
		for _, pkg := range checkerPackages {
			if s.pkg != pkg {
				continue
			}
			found = append(found, s.strayFindings()...)
			s.functions(func(f *ast.FuncDecl) {
				if makesValid(f) {
					makers[pkg]++
				}
			})
		}
	}
	require.Empty(t, found)
	for _, pkg := range checkerPackages {
		require.Equal(t, 1, makers[pkg], "%s has one function that makes Valid findings", pkg)
	}
}

func TestRefusesFindingsAnywhereElse(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		count int
	}{
		"check":                       {`func (c *T) Check() policy.Finding { return verify.FindingOf(nil) }`, 0},
		"maker of valid findings":     {`func valid() policy.Finding { return policy.Finding{Result: policy.Valid} }`, 0},
		"errors":                      {`func f() (int, error) { return 0, verify.Refuse(policy.ReasonMalformed, "", "") }`, 0},
		"finding as a result":         {`func f() policy.Finding { panic(0) }`, 1},
		"finding as a second result":  {`func (c *T) f() (int, policy.Finding) { panic(0) }`, 1},
		"exported":                    {`func (c *T) Verify() (int, policy.Finding) { panic(0) }`, 1},
		"pointer and slice":           {`func f() (*policy.Finding, []policy.Finding) { panic(0) }`, 2},
		"function literal":            {`var f = func() policy.Finding { panic(0) }`, 1},
		"field":                       {`type t struct{ finding policy.Finding }`, 1},
		"alias of the type":           {`type finding = policy.Finding`, 1},
		"function called Check":       {`func Check() policy.Finding { panic(0) }`, 1},
		"method called valid":         {`func (c *T) valid() policy.Finding { panic(0) }`, 1},
		"check makes its own":         {`func (c *T) Check() policy.Finding { return policy.Finding{} }`, 1},
		"check says valid":            {`func (c *T) Check() policy.Finding { f := verify.FindingOf(nil); f.Result = policy.Valid; return f }`, 1},
		"finding of an error":         {`func f() bool { return verify.FindingOf(nil).Reason == "" }`, 1},
		"another name for the import": {`func f() p.Finding { panic(0) }`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseSource("pkg/x/x.go", []byte("package x\n\nimport (\n\t\""+module+"/pkg/decide/policy\"\n\tp \""+module+"/pkg/decide/policy\"\n\t\""+module+"/pkg/decide/verify\"\n)\n\n"+c.body+"\n"))
			require.NoError(t, err)
			require.Len(t, s.strayFindings(), c.count, "%v", s.strayFindings())
		})
	}
}

func TestRefusesDotImportOfFindings(t *testing.T) {
	s, err := parseSource("pkg/x/x.go", []byte("package x\n\nimport . \""+module+"/pkg/decide/policy\"\n\nvar f Finding\n"))
	require.NoError(t, err)
	require.Len(t, s.strayFindings(), 1)
}
