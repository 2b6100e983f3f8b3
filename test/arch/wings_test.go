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
	ground         = 0  // api, config and library, which every wing that knows Kubernetes may import
	lastWithout    = 4  // the highest storey that knows neither Kubernetes nor api
	firstThatLogs  = 6  // below, facts are returned
	landing        = 9  // cmd/internal, which all programs share
	roof           = 10 // cmd, which wires everything
	maxMeanImports = 3.0
	maxDepth       = 8
)

// row matches a line of the table: | `pkg/formats` | image, intake | what holds there |
var row = regexp.MustCompile("(?m)^\\| `pkg/([a-z]+)` \\| ([a-z, ]+) \\| *\\S.*? *\\|$")

// house maps a room, such as pkg/formats/image, to its storey: that of the first wing is 1.
type house map[string]int

func parseTable(markdown string) (house, error) {
	rooms := house{}
	for i, match := range row.FindAllStringSubmatch(markdown, -1) {
		for room := range strings.SplitSeq(match[2], ", ") {
			name := "pkg/" + match[1] + "/" + room
			if _, twice := rooms[name]; twice {
				return nil, fmt.Errorf("%s is listed twice", name)
			}
			rooms[name] = i + 1
		}
	}
	return rooms, nil
}

func readTable(t *testing.T) house {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	table, err := parseTable(string(text))
	require.NoError(t, err)
	require.NotEmpty(t, table, "ARCHITECTURE.md has no table of wings")
	return table
}

// storey returns the storey of a package of the program.
func (h house) storey(pkg string) (storey int, known bool) {
	switch {
	case below(pkg, "cmd/internal"):
		return landing, true
	case below(pkg, "cmd"):
		return roof, true
	case below(pkg, "api"), pkg == "config", pkg == "config/crd", pkg == "library":
		return ground, true
	}
	storey, known = h[pkg]
	return storey, known
}

// broken lists the rules that a package's imports violate: only rooms of the own wing and of
// lower ones, no Kubernetes and no resources below the wing resources, no logger below tenancy,
// no test packages.
func (h house) broken(pkg string, imports []string) []string {
	var found []string
	storey, known := h.storey(pkg)
	if !known {
		return []string{pkg + " is in no wing"}
	}
	for _, imported := range imports {
		name, ours := own(imported)
		target, listed := h.storey(name)
		switch {
		case ours && below(name, "test"):
			found = append(found, pkg+" imports the test code "+name)
		case ours && !listed:
			found = append(found, pkg+" imports "+name+", which is in no wing")
		case ours && (target > storey || target == storey && filepath.Dir(name) != filepath.Dir(pkg) && storey != ground):
			found = append(found, fmt.Sprintf("%s (storey %d) imports %s (storey %d)", pkg, storey, name, target))
		case storey > ground && storey <= lastWithout && (ours && target == ground || below(imported, "k8s.io") || below(imported, "sigs.k8s.io")):
			found = append(found, fmt.Sprintf("%s (storey %d) imports %s", pkg, storey, imported))
		case storey < firstThatLogs && below(imported, logger):
			found = append(found, fmt.Sprintf("%s (storey %d) imports the logger", pkg, storey))
		}
	}
	return found
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

// isWing reports whether a package is the page of a wing.
func isWing(pkg string) bool { return filepath.Dir(pkg) == "pkg" }

func TestTheTableListsExactlyTheRooms(t *testing.T) {
	var listed, present []string
	for room := range readTable(t) {
		listed = append(listed, room)
	}
	for pkg := range readTree(t).imports() {
		if below(pkg, "pkg") && !isWing(pkg) {
			present = append(present, pkg)
		}
	}
	slices.Sort(listed)
	slices.Sort(present)
	require.Equal(t, present, listed, "expected: the rooms of the tree; actual: the table in ARCHITECTURE.md")
}

// lineOfRoom matches a line of a wing's page.
var lineOfRoom = regexp.MustCompile(`(?m)^//   - ([a-z]+): \S.*\.$`)

func TestThePageOfEachWingHasALineForEachRoom(t *testing.T) {
	rooms := map[string][]string{}
	for room := range readTable(t) {
		rooms[filepath.Dir(room)] = append(rooms[filepath.Dir(room)], filepath.Base(room))
	}
	for wing, want := range rooms {
		text, err := os.ReadFile(filepath.Join(root, wing, "doc.go"))
		require.NoError(t, err)
		var found []string
		for _, match := range lineOfRoom.FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		require.ElementsMatch(t, want, found, "%s/doc.go", wing)
	}
}

func TestImportsGoDownOnly(t *testing.T) {
	table := readTable(t)
	for pkg, imports := range readTree(t).imports() {
		if inProgram(pkg) && !isWing(pkg) {
			require.Empty(t, table.broken(pkg, imports))
		}
	}
}

func TestImportsStayFewAndShallow(t *testing.T) {
	imports := readTree(t).imports()
	rooms, edges := 0, 0
	for pkg, imported := range imports {
		if inProgram(pkg) {
			require.LessOrEqual(t, depth(imports, pkg), maxDepth, "chain of imports below %s", pkg)
		}
		if !below(pkg, "pkg") || isWing(pkg) {
			continue
		}
		rooms++
		for _, name := range imported {
			if name, ours := own(name); ours && below(name, "pkg") {
				edges++
			}
		}
	}
	mean := float64(edges) / float64(rooms)
	require.LessOrEqual(t, mean, maxMeanImports, "%d imports among %d rooms: see rule 5 of CONTRIBUTING.md; git diff shows which are new", edges, rooms)
}

func TestFixturesStayOutOfTheTestingPackage(t *testing.T) {
	for _, imported := range readTree(t).imports()[fixtures] {
		require.False(t, imported == "testing" || strings.HasPrefix(imported, "github.com/stretchr/testify"),
			"%s imports %s, and the demo would carry it", fixtures, imported)
	}
}

// small is a table of some rooms on the storeys that they have.
const small = "| `pkg/formats` | image, trust | a |\n| `pkg/decide` | verify | b |\n| `pkg/remote` | registry | c |\n| `pkg/evidence` | cosign | d |\n" +
	"| `pkg/resources` | compile, lint | e |\n| `pkg/tenancy` | operator | f |\n| `pkg/inspect` | check | g |\n| `pkg/server` | provider, warm | h |\n"

func TestRefusesImportsAgainstTheTable(t *testing.T) {
	table, err := parseTable(small)
	require.NoError(t, err)
	require.Len(t, table, 11)
	for name, c := range map[string]struct {
		pkg, imported string
		refused       bool
	}{
		"down":                         {"pkg/decide/verify", module + "/pkg/formats/image", false},
		"up":                           {"pkg/formats/image", module + "/pkg/decide/verify", true},
		"within a wing":                {"pkg/server/provider", module + "/pkg/server/warm", false},
		"into a command":               {"pkg/server/provider", module + "/cmd/landwaiter", true},
		"what commands share":          {"cmd/one", module + "/cmd/internal/program", false},
		"back into a command":          {"cmd/internal/program", module + "/cmd/one", true},
		"between commands":             {"cmd/one", module + "/cmd/two/inside", true},
		"evidence to api":              {"pkg/evidence/cosign", module + "/api/v1beta1", true},
		"evidence to Kubernetes":       {"pkg/formats/trust", "k8s.io/api/core/v1", true},
		"engine to controller-runtime": {"pkg/decide/verify", "sigs.k8s.io/yaml", true},
		"resources to api":             {"pkg/resources/compile", module + "/api/v1beta1", false},
		"resource types to Kubernetes": {"api/v1beta1", "k8s.io/apimachinery/pkg/runtime", false},
		"resource types to a room":     {"api/v1beta1", module + "/pkg/formats/image", true},
		"logger in the compiler":       {"pkg/resources/compile", logger, true},
		"logger in evidence":           {"pkg/evidence/cosign", logger, true},
		"logger at the edge":           {"pkg/server/provider", logger, false},
		"package in no wing":           {"pkg/utils", "fmt", true},
		"import in no wing":            {"pkg/server/provider", module + "/pkg/utils", true},
		"fixtures in the program":      {"cmd/landwaiter", module + "/test/kit/fixture", true},
		"fixtures in a room":           {"pkg/server/provider", module + "/test/kit/fixture", true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.refused, len(table.broken(c.pkg, []string{c.imported})) > 0)
		})
	}
}

func TestRefusesATableWithARoomTwice(t *testing.T) {
	_, err := parseTable("| `pkg/formats` | image, image | a |\n")
	require.Error(t, err)
}
