package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// A screen of help.
const (
	screenLines   = 50
	screenColumns = 120
)

func TestTheHelpOfTeamsAndPlatformsFitsAScreen(t *testing.T) {
	root := newRoot()
	for _, group := range root.Commands() {
		if group.Name() != "tenant" && group.Name() != "platform" {
			continue
		}
		for _, command := range append([]*cobra.Command{group}, group.Commands()...) {
			path := strings.Fields(command.CommandPath())[1:]
			var out bytes.Buffer
			fresh := newRoot()
			fresh.SetOut(&out)
			fresh.SetArgs(append(path, "--help"))
			require.NoError(t, fresh.Execute())
			lines := 0
			for line := range strings.Lines(out.String()) {
				lines += 1 + max(0, len(line)-2)/screenColumns
			}
			require.LessOrEqual(t, lines, screenLines, "%s:\n%s", command.CommandPath(), out.String())
		}
	}
}
