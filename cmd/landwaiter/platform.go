package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatform(by person) *cobra.Command {
	return group("platform", "Make and check the Git repository that a platform is kept in", newPlatformInit(by), newPlatformCheck(by), newPlatformBootstrap())
}

// writeFlags say how a tree is written.
type writeFlags struct {
	scaffold.WriteOptions
	by person
}

func (f *writeFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Force, "force", false, "replace files that somebody edited")
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "only say what would be written")
	uses(cmd, true, 0, false)
}

// printedTree is what the commands that write a tree print.
type printedTree struct {
	Folder    string        `json:"folder"`
	Files     []printedFile `json:"files"`
	Created   int           `json:"created"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	DryRun    bool          `json:"dryRun,omitempty"`
}

// write writes a tree and prints what became of it.
func (f *writeFlags) write(cmd *cobra.Command, dir string, tree scaffold.Tree) error {
	outcomes, err := scaffold.Write(dir, tree, f.WriteOptions)
	if err != nil {
		return notWritten(err)
	}
	count := map[scaffold.Result]int{}
	for _, o := range outcomes {
		count[o.Result]++
	}
	return f.by.output.print(cmd, printedTree{Folder: dir, DryRun: f.DryRun, Files: append([]printedFile{}, outcomes...),
		Created: count[scaffold.Created], Changed: count[scaffold.Changed], Unchanged: count[scaffold.Unchanged] + count[scaffold.Edited]})
}

// notWritten tells a tree that is refused from files that cannot be read or written.
func notWritten(err error) error {
	var edited *scaffold.EditedError
	var refused *scaffold.RefusedError
	if errors.As(err, &edited) || errors.As(err, &refused) {
		return &program.Exit{Code: program.ExitDenied, Err: err}
	}
	return program.Failed(err)
}

// show lists what is new or different, and counts the rest.
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
	s.line("%s: %d created, %d changed, %d as they were%s", amount(p.Created+p.Changed+p.Unchanged, "file"), p.Created, p.Changed, p.Unchanged, suffix)
}

// settings reads what an earlier platform init wrote into a folder; found is false if none did.
func settings(dir string) (p scaffold.Platform, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, scaffold.SettingsFile)) //nolint:gosec // the folder is the user's
	if errors.Is(err, os.ErrNotExist) {
		return scaffold.Platform{}, false, nil
	}
	if err != nil {
		return scaffold.Platform{}, false, fmt.Errorf("read the settings of the tree: %w", err)
	}
	p, err = scaffold.ReadPlatform(text)
	return p, true, err
}

// outsideOfTrees refuses a folder that is inside of a platform's repository.
func outsideOfTrees(dir string) error {
	folder, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find the folder %s: %w", dir, err)
	}
	for parent := filepath.Dir(folder); parent != folder; folder, parent = parent, filepath.Dir(parent) {
		if _, err := os.Lstat(filepath.Join(parent, scaffold.SettingsFile)); err == nil {
			return fmt.Errorf("%s is inside of %s, which is a platform's repository (it has %s): give that folder, or one outside of it", dir, parent, scaffold.SettingsFile)
		}
	}
	return nil
}

// oneFolder refuses arguments that are not one folder.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s takes one folder, not %d; see %s --help", cmd.Name(), len(args), cmd.CommandPath())
	}
	return nil
}
