//go:build e2e

package install

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of the commands of docs/operate/cold-start.md are nightly ones.
func TestEveryCommandOfThePageIsTestedOrNeedsGatekeepersRepository(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/operate/cold-start.md")
	require.NoError(t, err)
	source, err := os.ReadFile("otherwise_test.go")
	require.NoError(t, err)
	for i, block := range strings.Split(string(page), "```\n") {
		if i%2 == 0 || strings.HasPrefix(block, "Error") || strings.HasPrefix(block, "helm upgrade gatekeeper gatekeeper/gatekeeper ") {
			continue
		}
		used := false
		for _, has := range regexp.MustCompile(`documented\(t, "([^"]+)"\)|: +"(kubectl [^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			used = used || strings.Contains(block, has[1]+has[2])
		}
		require.True(t, used, block)
	}
}
