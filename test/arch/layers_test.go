package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	logger         = "github.com/sirupsen/logrus"
	fixtures       = "test/kit/fixture"
	firstThatLogs  = 4 // below, facts are returned
	evidenceLayer  = 2 // this and below must not import Kubernetes, except for resources
	resources      = "pkg/resources/resource"
	schemas        = "pkg/resources/schema" // validates with the libraries of an API server
	rights         = "pkg/resources/rights" // reads what resources say, and nothing else of Kubernetes
	maxMeanImports = 3.7                    // cmd/landwaiter, which wires all of them, has 25
	maxDepth       = 7
)

// row matches a line of the table: | `pkg/formats/image` | L0 | what it does |
var row = regexp.MustCompile("(?m)^\\| `((?:cmd|pkg|api|config)/[^`]+|config|library)` \\| L([0-9]) \\| *(\\S.*?) *\\|$")

// layers maps a package to its layer.
type layers map[string]int

func parseTable(markdown string) (layers, error) {
	table := layers{}
	for _, match := range row.FindAllStringSubmatch(markdown, -1) {
		if _, twice := table[match[1]]; twice {
			return nil, fmt.Errorf("%s is listed twice", match[1])
		}
		table[match[1]] = int(match[2][0] - '0')
	}
	return table, nil
}

func readTable(t *testing.T) layers {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	table, err := parseTable(string(text))
	require.NoError(t, err)
	require.NotEmpty(t, table, "ARCHITECTURE.md has no table of packages")
	return table
}

// broken lists the rules that a package's imports violate: only lower layers, no
// Kubernetes below L3, no logger below L4, no test packages.
func (l layers) broken(pkg string, imports []string) []string {
	var found []string
	layer, listed := l[pkg]
	if !listed {
		return []string{pkg + " is not in the table"}
	}
	for _, imported := range imports {
		if name, ours := own(imported); ours {
			found = append(found, l.upward(pkg, layer, name)...)
		}
		if layer <= evidenceLayer && layer > 0 && pkg != resources && pkg != schemas && (below(imported, "k8s.io") || below(imported, "sigs.k8s.io")) {
			found = append(found, fmt.Sprintf("%s (L%d) imports %s", pkg, layer, imported))
		}
		if layer < firstThatLogs && below(imported, logger) {
			found = append(found, fmt.Sprintf("%s (L%d) imports the logger", pkg, layer))
		}
	}
	return found
}

func (l layers) upward(pkg string, layer int, imported string) []string {
	target, listed := l[imported]
	switch {
	case below(imported, "test"):
		return []string{pkg + " imports the test code " + imported}
	case !listed:
		return []string{pkg + " imports " + imported + ", which is not in the table"}
	case target >= layer:
		return []string{fmt.Sprintf("%s (L%d) imports %s (L%d)", pkg, layer, imported, target)}
	case layer <= evidenceLayer && below(imported, "api") && pkg != resources && pkg != schemas && pkg != rights:
		return []string{fmt.Sprintf("%s (L%d) imports %s", pkg, layer, imported)}
	default:
		return nil
	}
}

// depth is the number of packages on the longest chain of own imports.
func depth(imports map[string][]string, pkg string) int {
	longest := 0
	for _, imported := range imports[pkg] {
		if name, ours := own(imported); ours && !below(name, "test") {
			longest = max(longest, depth(imports, name))
		}
	}
	return longest + 1
}

// inProgram says whether pkg is of the program, and not a tool that builds or tests it.
func inProgram(pkg string) bool {
	return below(pkg, "cmd") || below(pkg, "pkg") || below(pkg, "api") || below(pkg, "config/crd") || pkg == "config" || pkg == "library"
}

func TestTableListsExactlyThePackages(t *testing.T) {
	var listed, present []string
	for pkg := range readTable(t) {
		listed = append(listed, pkg)
	}
	for pkg := range readTree(t).imports() {
		if inProgram(pkg) {
			present = append(present, pkg)
		}
	}
	slices.Sort(listed)
	slices.Sort(present)
	require.Equal(t, present, listed, "expected: the packages of the tree; actual: the table in ARCHITECTURE.md")
}

func TestImportsGoDownOnly(t *testing.T) {
	table := readTable(t)
	for pkg, imports := range readTree(t).imports() {
		if inProgram(pkg) {
			require.Empty(t, table.broken(pkg, imports))
		}
	}
}

func TestImportsStayFewAndShallow(t *testing.T) {
	imports := readTree(t).imports()
	packages, edges := 0, 0
	for pkg, imported := range imports {
		if !inProgram(pkg) {
			continue
		}
		packages++
		for _, name := range imported {
			if _, ours := own(name); ours {
				edges++
			}
		}
		require.LessOrEqual(t, depth(imports, pkg), maxDepth, "chain of imports below %s", pkg)
	}
	mean := float64(edges) / float64(packages)
	require.LessOrEqual(t, mean, maxMeanImports, "%d imports among %d packages", edges, packages)
}

func TestFixturesStayOutOfTheTestingPackage(t *testing.T) {
	for _, imported := range readTree(t).imports()[fixtures] {
		require.False(t, imported == "testing" || strings.HasPrefix(imported, "github.com/stretchr/testify"),
			"%s imports %s, and the demo would carry it", fixtures, imported)
	}
}

func TestRefusesImportsAgainstTheTable(t *testing.T) {
	table, err := parseTable("| `pkg/formats/image` | L0 | a |\n| `api/v1beta1` | L0 | b |\n| `pkg/decide/verify` | L1 | c |\n" +
		"| `pkg/evidence/cosign` | L2 | d |\n| `pkg/formats/trust` | L2 | e |\n| `pkg/resources/rights` | L1 | i |\n| `pkg/resources/tenant` | L3 | f |\n| `pkg/server/provider` | L4 | g |\n| `cmd/landwaiter` | L5 | h |\n")
	require.NoError(t, err)
	require.Len(t, table, 9)
	for name, c := range map[string]struct {
		pkg, imported string
		refused       bool
	}{
		"down":                               {"pkg/decide/verify", module + "/pkg/image", false},
		"up":                                 {"pkg/formats/image", module + "/pkg/verify", true},
		"sideways":                           {"pkg/evidence/cosign", module + "/pkg/trust", true},
		"evidence to api":                    {"pkg/evidence/cosign", module + "/api/v1beta1", true},
		"api in pkg/resources/rights":        {"pkg/resources/rights", module + "/api/v1beta1", false},
		"Kubernetes in pkg/resources/rights": {"pkg/resources/rights", "k8s.io/api/core/v1", true},
		"tenant to api":                      {"pkg/resources/service", module + "/api/v1beta1", false},
		"evidence to Kubernetes":             {"pkg/formats/trust", "k8s.io/api/core/v1", true},
		"engine to controller-runtime":       {"pkg/decide/verify", "sigs.k8s.io/yaml", true},
		"resource types to Kubernetes":       {"api/v1beta1", "k8s.io/apimachinery/pkg/runtime", false},
		"logger in the compiler":             {"pkg/resources/service", logger, true},
		"logger at the edge":                 {"pkg/server/provider", logger, false},
		"package not in the table":           {"pkg/utils", "fmt", true},
		"import not in the table":            {"pkg/server/provider", module + "/pkg/utils", true},
		"fixtures in the program":            {"cmd/landwaiter", module + "/test/kit/fixture", true},
		"fixtures in a package":              {"pkg/server/provider", module + "/test/kit/fixture", true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.refused, len(table.broken(c.pkg, []string{c.imported})) > 0)
		})
	}
}

func TestRefusesTableWithAPackageTwice(t *testing.T) {
	_, err := parseTable("| `pkg/formats/image` | L0 | a |\n| `pkg/formats/image` | L1 | b |\n")
	require.Error(t, err)
}
