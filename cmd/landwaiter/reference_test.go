package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/generated"
)

// flagReference returns docs/reference/flags.md.
func flagReference() string {
	b := &strings.Builder{}
	b.WriteString("# Commands and flags\n\nGenerated from the program by `make generate`; `landwaiter COMMAND --help` prints the same.\n")
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if command.RunE != nil {
			describeCommand(b, command)
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	for _, command := range newRoot().Commands() {
		visit(command)
	}
	return b.String()
}

func describeCommand(b *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", command.CommandPath())
	text := command.Long
	if text == "" {
		text = command.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n", text, command.UseLine())
	var rows []string
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
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
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", name, value, initial, generated.Cell(usage)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | type | default | meaning |\n|---|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

func TestTheReferenceOfFlagsIsUpToDate(t *testing.T) {
	require.NoError(t, generated.Check("../../docs/reference/flags.md", "", "", flagReference()))
}
