package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatform(by person) *cobra.Command {
	return group("platform", "Create and check the Git repository of a platform", newPlatformInit(by), newPlatformScaffold(by),
		newPlatformCheck(by), newPlatformBootstrap())
}

// writeOptions configure how a tree is written.
func (s *shared) writeOptions() scaffold.WriteOptions {
	return scaffold.WriteOptions{Force: s.force, DryRun: s.dryRun}
}

// printedTree is the output of the commands that write a tree.
type printedTree struct {
	Folder    string        `json:"folder"`
	Files     []printedFile `json:"files"`
	Created   int           `json:"created"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	DryRun    bool          `json:"dryRun,omitempty"`
}

// printWritten prints the results for the files of a tree.
func (s *shared) printWritten(cmd *cobra.Command, dir string, outcomes []scaffold.Outcome) error {
	count := map[scaffold.Result]int{}
	for _, o := range outcomes {
		count[o.Result]++
	}
	return s.output.print(cmd, printedTree{Folder: dir, DryRun: s.dryRun, Files: append([]printedFile{}, outcomes...),
		Created: count[scaffold.Created], Changed: count[scaffold.Changed], Unchanged: count[scaffold.Unchanged] + count[scaffold.Edited]})
}

// notWritten distinguishes a refused tree from files that cannot be read or written.
func notWritten(err error) error {
	var edited *scaffold.EditedError
	var refused *scaffold.RefusedError
	if errors.As(err, &edited) || errors.As(err, &refused) {
		return &program.Exit{Code: program.ExitDenied, Err: err}
	}
	return program.Failed(err)
}

// show lists new and changed files, and counts the others.
func (p printedTree) show(s *screen) {
	shown := false
	for _, file := range p.Files {
		if file.Result == scaffold.Unchanged {
			continue
		}
		if !shown {
			s.row("FILE", "RESULT")
			shown = true
		}
		s.row(file.Path, file.Result)
	}
	suffix := ""
	if p.DryRun {
		suffix = " (dry run: nothing was written)"
	}
	s.line("%s: %d created, %d changed, %d unchanged%s", amount(p.Created+p.Changed+p.Unchanged, "file"), p.Created, p.Changed,
		p.Unchanged, suffix)
}

// maxGiven bounds a file that a flag names.
const maxGiven = 1 << 20

// readFile reads the file of a flag, which is standard input if it is -.
func readFile(cmd *cobra.Command, flag, name string) ([]byte, error) {
	from := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the file is the user's
		if err != nil {
			return nil, fmt.Errorf("read --%s: %w", flag, err)
		}
		defer func() { _ = file.Close() }() // nothing was written
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxGiven+1))
	if err == nil && len(text) > maxGiven {
		err = fmt.Errorf("it has more than %d bytes", maxGiven)
	}
	if err != nil {
		return nil, fmt.Errorf("read --%s: %w", flag, err)
	}
	return text, nil
}

// oneFolder accepts exactly one folder as argument.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s takes one directory, not %d; see %s --help", cmd.Name(), len(args), cmd.CommandPath())
	}
	return nil
}
