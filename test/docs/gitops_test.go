package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each point of the four documents has a row with a test that there is.
func TestEveryPointOfTheDocumentsNamesTheTestThatShowsIt(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/howto/gitops.md"))
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
