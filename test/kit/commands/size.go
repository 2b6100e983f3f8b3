package commands

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Size bounds the command line of a program, so that people can read all of it.
type Size struct {
	// Registrations of flags in all commands together. Those of every command count once, and
	// --help does not count.
	Registrations int
	// Lines and Columns are those of a screen that has the help of any one command. Longer
	// lines count as several; with 0 Columns none does.
	Lines, Columns int
}

// CheckSize fails if a program has more flags than size allows, or help that is longer.
func CheckSize(t *testing.T, root *cobra.Command, size Size) {
	t.Helper()
	var all []*cobra.Command
	var collect func(*cobra.Command)
	collect = func(command *cobra.Command) {
		all = append(all, command)
		for _, sub := range command.Commands() {
			collect(sub)
		}
	}
	collect(root) // before cobra adds its own: help and completion
	found := 0
	for _, command := range all {
		count := func(flag *pflag.Flag) {
			if flag.Name != "help" {
				found++
			}
		}
		command.PersistentFlags().VisitAll(count)
		command.LocalNonPersistentFlags().VisitAll(count)
	}
	t.Logf("%s has %d registrations of flags", root.Name(), found)
	require.LessOrEqual(t, found, size.Registrations, "%s has more flags than it may have: merge or leave out some", root.Name())
	for _, command := range all {
		lines := helpLines(t, root, command, size.Columns)
		t.Logf("%s --help has %d lines", command.CommandPath(), lines)
		require.LessOrEqual(t, lines, size.Lines, "the help of %s does not fit on a screen: shorten it", command.CommandPath())
	}
}

// helpLines returns how many lines of a screen the help of a command takes.
func helpLines(t *testing.T, root, command *cobra.Command, columns int) int {
	t.Helper()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(strings.Fields(command.CommandPath())[len(strings.Fields(root.CommandPath())):], "--help"))
	require.NoError(t, root.Execute(), command.CommandPath())
	require.Contains(t, out.String(), "Usage:", command.CommandPath())
	lines := 0
	for line := range strings.Lines(out.String()) {
		lines++
		if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > 0 && width > columns {
			lines += (width - 1) / columns
		}
	}
	return lines
}
