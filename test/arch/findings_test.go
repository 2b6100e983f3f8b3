package arch

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages whose Checkers verify evidence. They report success only by a proof, which one
// function makes, and failure by an error, never by a Finding.
var checkerPackages = []string{"pkg/evidence/cosign", "pkg/evidence/notation"}

const (
	findings = "pkg/decide/policy" // has Finding and NewProof
	refusals = "pkg/decide/verify" // has FindingOf and Found
	maker    = "proof"             // the method that makes proofs
)

// strayFindings lists the names that the packages of Checkers must not use: policy.Finding,
// policy.Valid and policy.Restore, verify.FindingOf and verify.Found; and policy.NewProof, outside the
// method that makes proofs. Aliases of the two packages are followed.
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

func makesProofs(function *ast.FuncDecl) bool {
	return function != nil && function.Recv != nil && function.Name.Name == maker
}

// stray reports whether function must not use a name of pkg.
func stray(pkg, name string, function *ast.FuncDecl) bool {
	switch pkg {
	case findings:
		return name == "Finding" || name == "Valid" || name == "Restore" || name == "NewProof" && !makesProofs(function)
	case refusals:
		return name == "FindingOf" || name == "Found"
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
				if makesProofs(f) {
					makers[pkg]++
				}
			})
		}
	}
	require.Empty(t, found)
	for _, pkg := range checkerPackages {
		require.Equal(t, 1, makers[pkg], "%s has one method that makes proofs", pkg)
	}
}

func TestRefusesFindingsAnywhereElse(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		count int
	}{
		"check":                       {`func (c *T) Check() (policy.Proof, error) { return policy.Proof{}, nil }`, 0},
		"maker of proofs":             {`func (s signer) proof() policy.Proof { return policy.NewProof("k", "", nil) }`, 0},
		"errors":                      {`func f() (int, error) { return 0, verify.Refuse(policy.ReasonMalformed, "", "") }`, 0},
		"finding as a result":         {`func f() policy.Finding { panic(0) }`, 1},
		"finding as a second result":  {`func (c *T) f() (int, policy.Finding) { panic(0) }`, 1},
		"exported":                    {`func (c *T) Verify() (int, policy.Finding) { panic(0) }`, 1},
		"pointer and slice":           {`func f() (*policy.Finding, []policy.Finding) { panic(0) }`, 2},
		"function literal":            {`var f = func() policy.Finding { panic(0) }`, 1},
		"field":                       {`type t struct{ finding policy.Finding }`, 1},
		"alias of the type":           {`type finding = policy.Finding`, 1},
		"function called proof":       {`func proof() policy.Proof { return policy.NewProof("k", "", nil) }`, 1},
		"check makes its own proof":   {`func (c *T) Check() policy.Proof { return policy.NewProof("k", "", nil) }`, 1},
		"check makes its own":         {`func (c *T) Check() any { return policy.Finding{} }`, 1},
		"check says valid":            {`func (c *T) Check() any { return policy.Valid }`, 1},
		"finding of an error":         {`func f() bool { return verify.FindingOf(nil).Reason == "" }`, 1},
		"finding of a check":          {`func f() bool { return verify.Found(policy.Proof{}, nil).Reason == "" }`, 1},
		"a verdict that was kept":     {`func f() { policy.Restore("allowed", policy.Verdict{}) }`, 1},
		"another name for the import": {`func f() p.Finding { panic(0) }`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseSource("pkg/x/x.go",
				[]byte("package x\n\nimport (\n\t\""+module+"/pkg/decide/policy\"\n\tp \""+module+"/pkg/decide/policy\"\n\t\""+module+
					"/pkg/decide/verify\"\n)\n\n"+c.body+"\n"))
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

// What makes a verdict allow, or a finding count, and the packages that may call it.
func makers() map[string][]string {
	return map[string][]string{
		"NewProof":           append(slices.Clone(checkerPackages), "pkg/remote/cache"), // the latter for what was kept, and sealed
		"Restore":            {"pkg/remote/cache"},
		"Unverified":         {refusals},
		"AllowedByException": {refusals},
	}
}

func TestOnlyCheckersRulesAndExceptionsMakeWhatAllows(t *testing.T) {
	callers := map[string]map[string]bool{}
	for _, s := range readTree(t).written() {
		if !strings.HasPrefix(s.pkg, "pkg/") && !strings.HasPrefix(s.pkg, "cmd/") || !slices.Contains(s.imports, module+"/"+findings) {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok || makers()[selector.Sel.Name] == nil {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == path.Base(findings) {
				if callers[selector.Sel.Name] == nil {
					callers[selector.Sel.Name] = map[string]bool{}
				}
				callers[selector.Sel.Name][s.pkg] = true
			}
			return true
		})
		for _, spec := range s.syntax.Imports {
			require.False(t, spec.Name != nil && spec.Path.Value == strconv.Quote(module+"/"+findings), "%s imports package policy by another name", s.path)
		}
	}
	for name, may := range makers() {
		require.ElementsMatch(t, may, slices.Collect(maps.Keys(callers[name])), name)
	}
}
