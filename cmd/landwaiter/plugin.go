package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// pluginName is the name under which kubectl finds the program as its plugin.
const pluginName = "kubectl-landwaiter"

// calledAs makes help and errors name the program as it was called: as a plugin of kubectl,
// if that is the name of its file.
func calledAs(root *cobra.Command, program string) {
	if name, _, _ := strings.Cut(filepath.Base(program), "."); name != pluginName { // .exe
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl landwaiter"}
	renameExamples(root)
}

func renameExamples(cmd *cobra.Command) {
	lines := strings.SplitAfter(cmd.Example, "\n")
	for i, line := range lines {
		for _, before := range []string{"  ", "| "} {
			line = strings.Replace(line, before+"landwaiter ", before+"kubectl landwaiter ", 1)
		}
		lines[i] = line
	}
	cmd.Example = strings.Join(lines, "")
	for _, sub := range cmd.Commands() {
		renameExamples(sub)
	}
}
