package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// maxQuickCommands bounds the quick start, the image included and without the clean-up.
const maxQuickCommands = 10

func TestTheQuickStartHasTenCommandsAtMost(t *testing.T) {
	blocks, err := page.Read(root, "docs/start/quickstart.md")
	require.NoError(t, err)
	counts := map[bool]int{}
	for _, b := range blocks {
		if b.Commands() {
			counts[b.Section == "Clean up"] += commands(b.Text)
		}
	}
	require.LessOrEqual(t, counts[false], maxQuickCommands)
	require.Equal(t, 2, counts[true])
}

// commands counts the commands of a block. Lines that continue a command, and those of a
// here-document, are not commands.
func commands(text string) (count int) {
	continued, document := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if document {
			document = line != "EOF"
			continue
		}
		if !continued && line != "" {
			count++
		}
		continued, document = strings.HasSuffix(line, `\`), strings.HasSuffix(line, "<<EOF")
	}
	return count
}

func TestCommandsAreCounted(t *testing.T) {
	require.Equal(t, 3, commands("one\ntwo \\\n  --more\n\nthree -f - <<EOF\nnot\nEOF\n"))
}
