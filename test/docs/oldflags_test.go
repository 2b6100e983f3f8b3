package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a script is told to write instead exists, in the reference that the programs generate.
func TestTheNewFormsOfOldFlagsExist(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../docs/reference/" + name)
		require.NoError(t, err)
		return string(text)
	}
	reference := read("flags.md") + read("server.md")
	commands, err := os.ReadDir("../../docs/reference/commands")
	require.NoError(t, err)
	for _, page := range commands {
		reference += read("commands/" + page.Name())
	}
	flags := regexp.MustCompile("--[a-z][a-z-]*")
	rows := 0
	for line := range strings.Lines(read("old-flags.md")) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 2 || cells[0] == "| before" {
			continue
		}
		rows++
		for _, flag := range flags.FindAllString(cells[1], -1) {
			require.Contains(t, reference, "| `"+flag+"`", line)
		}
	}
	require.Greater(t, rows, 25)
}
