package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Requirements have ids in the two tables that list them. Nobody else can look one up.
func TestNoPageOfTheLibraryNamesARequirementByItsID(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "library", "*", "README.md"))
	require.NoError(t, err)
	pages = append(pages, filepath.Join(root, "library/README.md"))
	require.Greater(t, len(pages), 10)
	id := regexp.MustCompile(`\b[AFTDR][0-9]{1,2}\b`)
	for _, page := range pages {
		name, err := filepath.Rel(root, page)
		require.NoError(t, err)
		for line := range strings.Lines(read(t, name)) {
			require.NotRegexp(t, id, line, name)
		}
	}
}
