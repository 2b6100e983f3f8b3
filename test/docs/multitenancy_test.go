package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each requirement has one row with tests, each in the file that the link leads to, and says what is
// real in them and what is played. What is refused has the reason, and tests of what replaces it.
func TestEveryRequirementNamesTheTestsThatShowIt(t *testing.T) {
	text := read(t, "docs/design/multitenancy.md")
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (R\d+) \|.*$`).FindAllStringSubmatch(text, -1) {
		require.NotContains(t, rows, row[1])
		rows[row[1]] = row[0]
	}
	for i := range 21 {
		id := fmt.Sprint("R", i+1)
		row, ok := rows[id]
		require.True(t, ok, "%s has no row", id)
		named := regexp.MustCompile("\\[`(Test\\w+)`\\]\\(\\.\\./\\.\\./([\\w/.-]+)\\)").FindAllStringSubmatch(row, -1)
		require.Equal(t, strings.Count(row, "`Test"), len(named), "%s: link each test to its file", id)
		require.NotEmpty(t, named, "%s needs a test, of what replaces it if it is refused", id)
		if strings.Contains(row, "**No, because**") {
			require.Contains(t, row, " Instead: ", "%s has no replacement", id)
		}
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		require.Len(t, cells, 6, id)
		require.NotContains(t, cells, "", id)
		for _, test := range named {
			require.Contains(t, read(t, test[2]), "\nfunc "+test[1]+"(", "%s: %s has no test %s", id, test[2], test[1])
		}
		delete(rows, id)
	}
	require.Empty(t, rows)
}

// The design document leaves six questions open, and a page about them answers each.
func TestEveryOpenQuestionOfTheDesignHasAnAnswer(t *testing.T) {
	text := read(t, "docs/design/multitenancy.md")
	for i := range 6 {
		require.Regexp(t, fmt.Sprintf(`(?m)^\| %d\. [^|]+\? \| \S[^|]+ \|$`, i+1), text)
	}
}
