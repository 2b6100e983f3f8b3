package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// Each point of the four documents has a row with a test that there is.
func TestEveryPointOfTheDocumentsNamesTheTestThatShowsIt(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/design/gitops-points.md"))
	require.NoError(t, err)
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([AFTD]\d+) \|.*$`).FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, rows, row[1])
		rows[row[1]] = row[0]
	}
	known := tests(t)
	for document, points := range map[string]int{"A": 14, "F": 19, "T": 13, "D": 8} {
		for i := range points {
			id := fmt.Sprint(document, i+1)
			require.Contains(t, rows, id)
			named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(rows[id], -1)
			require.NotEmpty(t, named, "%s names no test", id)
			for _, test := range named {
				require.NotEmpty(t, known[test[1]], "%s: there is no test %s", id, test[1])
			}
			delete(rows, id)
		}
	}
	require.Empty(t, rows)
}

// What a document asks for is a point, an answer of the design, or a row with a tool.
func TestWhatTheDocumentsAskOfOthersHasATool(t *testing.T) {
	text := read(t, "docs/howto/other-tools.md")
	rows := regexp.MustCompile(`(?m)^\| [^|]+ \| [AFTDR](?:, [AFTDR])* \| [^|]+ \| [^|]+ \|$`).FindAllString(text, -1)
	require.Len(t, rows, len(regexp.MustCompile(`(?m)^\| `).FindAllString(text, -1))-4, "each row but the four heads has a document and two answers")
	for _, named := range []string{"Hard tenancy", "Capsule", "kiosk", "Crossplane", "Azure Service Operator", "Sealed Secrets", "FlexVolume", "Akv2k8s",
		"AAD Pod Identity", "Cluster API", "Kibana", "kubeconform", "Kyverno", "Carvel", "Windows", "pipenv"} {
		require.Contains(t, strings.Join(rows, "\n"), named)
	}
}

// The tests in test/gitops need a cluster to notice that a page or section has another name.
func TestThePagesOnGitOpsHaveWhatTheirTestsFollow(t *testing.T) {
	const layouts, takeOver = "docs/howto/gitops-layouts.md", "docs/howto/gitops-take-over.md"
	names := []string{"docs/tutorials/platform-in-git.md", "docs/howto/gitops-operate.md", layouts, takeOver}
	listed := regexp.MustCompile(`(?m)^\t\t"(docs/[^"]+)",$`).FindAllStringSubmatch(read(t, "test/gitops/followed_test.go"), -1)
	var blocks []page.Block
	require.Len(t, listed, len(names))
	for i, name := range names {
		require.Equal(t, name, listed[i][1])
		read, err := page.Read(root, name)
		require.NoError(t, err)
		blocks = append(blocks, read...)
	}
	pages := func(pick func(page.Block) bool) (found []string) {
		for _, b := range blocks {
			if pick(b) {
				found = append(found, b.Page)
			}
		}
		return found
	}
	for _, layout := range []string{"arc", "groups", "demo"} {
		found := pages(func(b page.Block) bool {
			return b.Page == layouts && strings.HasPrefix(b.Section, "`"+layout+"`") && b.Mark == page.Run
		})
		require.NotEmpty(t, found, layout)
	}
	// Other layouts use it with the name of their folder.
	require.Equal(t, names[:1], pages(func(b page.Block) bool {
		return b.Mark == page.Run && strings.Contains(b.Text, ".url=oci://") && strings.Contains(b.Text, "platform init fleet ")
	}))
	for test, want := range map[string][]string{
		"TestTheDemosRepositoryIsTakenOverAndRuns":          {layouts, takeOver}, // the test runs the second first
		"TestTheLayoutDemoIsAppliedToTheEnd":                {layouts, layouts},  // the last one deletes
		"TestTheLayoutGroupsIsAppliedToTheEnd":              {layouts},
		"TestTheRepositoryOfTheDocumentOnTMCIsTakenOver":    {takeOver, takeOver},
		"TestTheDemosTenantsAreTakenOver":                   {takeOver},
		"TestTheCommandsOfThePageOnGitOpsWork":              {takeOver},
		"TestKyvernoIsKeptAsThePageSays":                    {takeOver},
		"TestATenantIsRemovedFromTheLayoutArcAsThePageSays": {names[1]},
	} {
		require.Equal(t, want, pages(func(b page.Block) bool { return b.Mark == page.By && b.Name == test }), test)
	}
	require.Equal(t, []string{takeOver, takeOver, takeOver}, pages(func(b page.Block) bool { return b.Mark == page.StandIn }))
	require.True(t, slices.ContainsFunc(blocks, func(b page.Block) bool { return b.Mark == page.Fails }))
}
