package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxExceptions is how many rules of style may be switched off for a file.
const maxExceptions = 30

// exempt matches a setting of Vale that changes a rule for some files.
var exempt = regexp.MustCompile(`^Landwaiter\.\w+ *= *(NO|warning|suggestion)$`)

// exceptions returns the settings of a configuration of Vale that change a rule, and those without
// a reason above their section.
func exceptions(config string) (all, unexplained []string) {
	section, explained, above := "", false, false
	for _, line := range strings.Split(config, "\n") {
		switch {
		case strings.HasPrefix(line, "["):
			section, explained = line, above
		case exempt.MatchString(line):
			all = append(all, section+" "+line)
			if !explained && !above {
				unexplained = append(unexplained, section+" "+line)
			}
		}
		above = strings.HasPrefix(line, "# ") && len(strings.Fields(line)) > 3
	}
	return all, unexplained
}

// An exception has its reason next to it, in the files of settings alone: there they are seen together.
func TestExceptionsFromTheStyleAreFewAndHaveReasons(t *testing.T) {
	count := 0
	for _, name := range []string{".vale.ini", ".vale/messages.ini", ".vale/help.ini"} {
		all, unexplained := exceptions(read(t, name))
		require.Empty(t, unexplained, name)
		count += len(all)
	}
	require.LessOrEqual(t, count, maxExceptions)

	off := regexp.MustCompile(`(<!--|//|#) *vale +(off|[A-Za-z.]+ *= *NO)`)
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "testdata"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".md", ".go", ".yaml", ".yml"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		require.NotRegexp(t, off, string(text), name)
		return err
	}))
}

func TestAnExceptionWithoutAReasonIsFound(t *testing.T) {
	all, unexplained := exceptions("[*.md]\nBasedOnStyles = Landwaiter\n\n# It repeats words of other projects.\n[docs/a.md]\nLandwaiter.Turns = " +
		"NO\n\n[docs/b.md]\nLandwaiter.Spelling = NO\n")
	require.Equal(t, []string{"[docs/a.md] Landwaiter.Turns = NO", "[docs/b.md] Landwaiter.Spelling = NO"}, all)
	require.Equal(t, []string{"[docs/b.md] Landwaiter.Spelling = NO"}, unexplained)
}
