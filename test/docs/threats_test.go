package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTestsThatTheThreatModelNamesExist(t *testing.T) {
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(read(t, "docs/design/threats.md"), -1)
	require.Greater(t, len(named), 30)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	exist := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(text, -1) {
			exist[string(found[1])] = true
		}
		return err
	}))
	for _, name := range named {
		require.True(t, exist[name[1]] || name[1] == "TestName", name[1])
	}
}
