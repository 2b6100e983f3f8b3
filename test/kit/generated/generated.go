// Package generated holds generated text to what it is generated from. Tests call [Check]
// to compare both; with [UpdateVariable] set it writes, as `make generate` does.
package generated

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// UpdateVariable names the environment variable that makes [Check] write what is
// out of date instead of returning an error.
const UpdateVariable = "LANDWAITER_UPDATE"

// Check compares the text between the lines begin and end of the file at path with
// want, and returns an error that says what to do if it differs. Empty lines mean
// the whole file.
func Check(path, begin, end, want string) error {
	content, err := os.ReadFile(path)
	if err != nil && (begin != "" || !os.IsNotExist(err)) {
		return fmt.Errorf("read generated text: %w", err)
	}
	before, after := "", ""
	if begin != "" {
		var rest string
		var opened, closed bool
		before, rest, opened = strings.Cut(string(content), begin+"\n")
		_, after, closed = strings.Cut(rest, end+"\n")
		if !opened || !closed {
			return fmt.Errorf("%s has no lines %q and %q", path, begin, end)
		}
		before, after = before+begin+"\n", end+"\n"+after
	}
	whole := before + want + after
	if whole == string(content) {
		return nil
	}
	if os.Getenv(UpdateVariable) == "" {
		return fmt.Errorf("%s is out of date; run make generate", filepath.Clean(path))
	}
	if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
		return fmt.Errorf("write generated text: %w", err)
	}
	return nil
}

// Cell returns text for a cell of a Markdown table.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
