package commands

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// CheckExamples fails if the help of a command has no example, or one with a command or a flag
// that does not exist. fresh returns the program without flags set.
func CheckExamples(t *testing.T, fresh func() *cobra.Command) {
	t.Helper()
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		require.True(t, command.HasSubCommands() || command.Example != "", "%s has no example", command.CommandPath())
		for _, part := range regexp.MustCompile(`\n|\|\||\||>`).Split(strings.ReplaceAll(command.Example, "\\\n", " "), -1) {
			words := splitWords(part)
			if len(words) == 0 || words[0] != command.Root().Name() {
				continue
			}
			root := fresh()
			found, rest, err := root.Find(words[1:])
			require.NoError(t, err, part)
			require.NoError(t, found.ParseFlags(rest), part)
			if found.Args != nil {
				require.NoError(t, found.Args(found, found.Flags().Args()), part)
			}
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	visit(fresh())
}

// splitWords splits a command line as a shell does, as far as examples need it.
func splitWords(line string) (words []string) {
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	return words
}
