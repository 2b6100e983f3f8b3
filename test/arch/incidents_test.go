package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// classes is the number of rows in the table of published incidents in
// docs/design/threats.md. Every test that a row names must fail without the guard that it is
// about; that needs a build for each guard, so it runs with make mutants.
const classes = 33

// incident is one row of the table: a class of incidents with the tests that deny it.
type incident struct {
	class int
	tests []string // PACKAGE.TestName or PACKAGE.TestName/subtest, PACKAGE being a folder's last part
}

var (
	line  = regexp.MustCompile(`(?m)^\| ([0-9]+) \| (.*) \|$`)
	named = regexp.MustCompile("`([a-z0-9]+\\.Test[^`]+)`")
)

// readIncidents returns the rows of the table, in their order.
func readIncidents(t *testing.T) []incident {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/design/threats.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Published incidents\n")
	require.True(t, found, "docs/design/threats.md has no section Published incidents")
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []incident
	for _, match := range line.FindAllStringSubmatch(section, -1) {
		class, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		cells := strings.Split(match[2], " | ")
		require.Len(t, cells, 4, "row %d has an id, what happened, what we do, and tests", class)
		for _, cell := range cells {
			require.NotEmpty(t, strings.TrimSpace(cell), "row %d", class)
		}
		r := incident{class: class}
		for _, name := range named.FindAllStringSubmatch(cells[3], -1) {
			r.tests = append(r.tests, name[1])
		}
		require.Equal(t, strings.Count(cells[3], "`")/2, len(r.tests), "row %d names something that is no test: %s", class, cells[3])
		rows = append(rows, r)
	}
	return rows
}

// tests maps PACKAGE.TestName to the folder of the package and the strings in the test,
// among which are the names of its subtests.
type tests map[string]declared

type declared struct {
	folder  string
	strings []string
}

func readTests(t *testing.T) tests {
	t.Helper()
	found := tests{}
	for _, s := range readTree(t) {
		if !s.test {
			continue
		}
		s.functions(func(f *ast.FuncDecl) {
			if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				return
			}
			key := path.Base(s.pkg) + "." + f.Name.Name
			require.NotContains(t, found, key, "two folders have the same last part and a test of the same name: %s", s.pkg)
			found[key] = declared{folder: s.pkg, strings: stringsIn(f)}
		})
	}
	return found
}

func stringsIn(node ast.Node) []string {
	var found []string
	ast.Inspect(node, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// find returns where a test is declared.
func (ts tests) find(name string) (declared, bool) {
	function, subtest, _ := strings.Cut(name, "/")
	d, ok := ts[function]
	return d, ok && (subtest == "" || slices.Contains(d.strings, subtest))
}

func TestTheTableHasEveryPublishedClass(t *testing.T) {
	rows := readIncidents(t)
	require.Len(t, rows, classes)
	for i, r := range rows {
		require.Equal(t, i+1, r.class)
		require.NotEmpty(t, r.tests, "row %d names no test", r.class)
	}
}

func TestEveryTestOfTheTableExists(t *testing.T) {
	exist := readTests(t)
	for _, r := range readIncidents(t) {
		for _, name := range r.tests {
			_, ok := exist.find(name)
			require.True(t, ok, "row %d names %s", r.class, name)
		}
	}
}

func TestEveryTestOfTheTableHasAGuardToTakeOut(t *testing.T) {
	type pair struct {
		class int
		test  string
	}
	guarded, listed := map[pair]bool{}, map[pair]bool{}
	for _, g := range guards() {
		guarded[pair{g.class, g.test}] = true
	}
	for _, r := range readIncidents(t) {
		for _, name := range r.tests {
			listed[pair{r.class, name}] = true
		}
	}
	require.Equal(t, listed, guarded, "expected: the tests of docs/design/threats.md; actual: those of guardlist_test.go")
}

func TestEveryGuardIsInTheCodeOnce(t *testing.T) {
	for _, g := range guards() {
		_, err := g.mutated()
		assert.NoError(t, err, "row %d", g.class)
	}
}
