package arch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// want matches the end of a line that must not compile: // want "part of the compiler's message"
var want = regexp.MustCompile(`// want "([^"]+)"$`)

// said matches what the compiler says of a line of a slip.
var said = regexp.MustCompile(`(?m)^(?:\./)?testdata/slips/\S+/slip\.go:(\d+):\d+: (.+)$`)

// Each folder of testdata/slips is a package with one mistake that would open the door. Types refuse it, so that no
// reviewer has to see it.
func TestMistakesThatWouldAdmitAnImageDoNotCompile(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "slips", "*", "slip.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			expected := map[string]string{}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for i, line := range strings.Split(string(text), "\n") {
				if match := want.FindStringSubmatch(line); match != nil {
					expected[fmt.Sprint(i+1)] = match[1]
				}
			}
			require.NotEmpty(t, expected, "no line says what the compiler refuses")

			// -e: all errors, not only the first ten.
			output, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./"+filepath.Dir(file)).CombinedOutput()
			require.Error(t, err, "the mistake compiles")
			for _, match := range said.FindAllStringSubmatch(string(output), -1) {
				part, refused := expected[match[1]]
				require.True(t, refused, "line %s does not compile for another reason: %s", match[1], match[2])
				require.Contains(t, match[2], part, "line %s", match[1])
				delete(expected, match[1])
			}
			require.Empty(t, expected, "these lines compile; the compiler said:\n%s", output)
		})
	}
}
