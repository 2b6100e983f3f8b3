package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// CheckReference compares the page at path with the help of all commands below root.
func CheckReference(path string, root *cobra.Command) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# Commands and flags of %s\n\nGenerated from the program by `make generate`; `%[1]s COMMAND --help` prints the same.\n", root.Name())
	if root.HasPersistentFlags() {
		b.WriteString("\n## Flags of every command\n")
		table(b, root.PersistentFlags())
	}
	for _, command := range root.Commands() {
		describe(b, command)
	}
	return generated.Check(path, "", "", b.String())
}

func describe(b *strings.Builder, command *cobra.Command) {
	if command.RunE != nil {
		describeCommand(b, command)
	}
	for _, sub := range command.Commands() {
		describe(b, sub)
	}
}

func describeCommand(b *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", command.CommandPath())
	text := command.Long
	if text == "" {
		text = command.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n", text, command.UseLine())
	table(b, command.LocalFlags())
}

// named is the value of a flag that has named values.
type named interface{ Values() *pflag.FlagSet }

// namedRows lists the values of a flag that has named ones.
func namedRows(flag string, values *pflag.FlagSet) (rows []string) {
	values.VisitAll(func(value *pflag.Flag) {
		initial := "none"
		if value.DefValue != "" {
			initial = "`" + value.DefValue + "`"
		}
		rows = append(rows, fmt.Sprintf("| `--%s %s=…` | %s | %s | %s |", flag, value.Name, value.Value.Type(), initial, generated.Cell(value.Usage)))
	})
	return rows
}

// table lists flags.
func table(b *strings.Builder, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(flag *pflag.Flag) {
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name += ", `-" + flag.Shorthand + "`"
		}
		value, usage := pflag.UnquoteUsage(flag)
		initial := "none"
		switch {
		case flag.Value.Type() == "bool", flag.DefValue != "" && flag.DefValue != "[]":
			initial = "`" + flag.DefValue + "`"
		}
		if value == "" {
			value = "switch"
		}
		if has, ok := flag.Value.(named); ok {
			rows = append(rows, fmt.Sprintf("| %s | %s | | %s |", name, value, generated.Cell(usage)))
			rows = append(rows, namedRows(flag.Name, has.Values())...)
			return
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", name, value, initial, generated.Cell(usage)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | type | default | meaning |\n|---|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

// CheckDefaults fails if a flag's text names its default: that can be wrong, and the one that
// pflag prints cannot.
func CheckDefaults(t *testing.T, root *cobra.Command) {
	t.Helper()
	visited := 0
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			visited++
			require.NotContains(t, flag.Usage, "default", "%s --%s", command.CommandPath(), flag.Name)
			if has, ok := flag.Value.(named); ok {
				has.Values().VisitAll(func(value *pflag.Flag) {
					visited++
					require.NotContains(t, value.Usage, "default", "%s --%s %s", command.CommandPath(), flag.Name, value.Name)
				})
			}
		})
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	visit(root)
	require.Greater(t, visited, 40)
}
