package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	// blockTimeout bounds the commands of one block, and repetitions of them.
	blockTimeout = 2 * time.Minute
	// pause is between two repetitions.
	pause = 250 * time.Millisecond
)

// Substitution is a part of a page that only a reader has, and what the test has instead.
type Substitution struct {
	Page, Test string
	// Why says what differs. It is for whoever reads the table.
	Why string
}

// Runner runs the blocks of pages in their order.
type Runner struct {
	// Test is the name of the test: blocks that are marked as run by it are run too.
	Test string
	// Dir is the folder that commands run in, and Environment their whole environment.
	Dir         string
	Environment []string
	// Substitutions apply in their order; what commands print is changed back.
	Substitutions []Substitution
	// StandIns run instead of blocks with such a mark. What they return counts as output.
	StandIns map[string]func(context.Context, Block) (string, error)
	// Progress receives what is run and what it printed.
	Progress io.Writer
}

// Run runs the commands of blocks with bash, saves what a reader would save, and compares
// what commands printed with what the page shows. It ends at the first block that differs.
func (r *Runner) Run(ctx context.Context, blocks ...Block) error {
	printed := "" // by the last commands
	for i, b := range blocks {
		if b.Mark == By && b.Name == r.Test {
			b.Mark = Run
		}
		began := time.Now()
		output, err := r.one(ctx, b, printed)
		if b.Mark == Repeat && err == nil {
			output, err = r.repeat(ctx, b, blocks[i+1:])
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", b, err, output)
		}
		if b.executed() {
			printed = output
		}
		if b.executed() {
			fmt.Fprintf(r.Progress, "--- %s (%s, %s)\n%s%s", b, b.Mark, time.Since(began).Round(10*time.Millisecond), b.Text, output)
		}
	}
	return nil
}

// executed says whether a block has output of its own.
func (b Block) executed() bool {
	return b.Commands() && (b.Mark == Run || b.Mark == Fails || b.Mark == Repeat) || b.Mark == StandIn
}

// one does what the mark of a block says, once.
func (r *Runner) one(ctx context.Context, b Block, printed string) (string, error) {
	switch {
	case b.Mark == Save:
		return "", os.WriteFile(filepath.Join(r.Dir, b.Name), []byte(r.substitute(b.Text)), 0o600)
	case b.Mark == Output:
		return "", Compare(b.Text, r.restore(printed))
	case b.Mark == StandIn:
		standIn := r.StandIns[b.Name]
		if standIn == nil {
			return "", fmt.Errorf("the test has no stand-in %q", b.Name)
		}
		return standIn(ctx, b)
	case b.Mark == Fails && b.Commands():
		output, err := r.Bash(ctx, b.Text)
		if err == nil {
			return output, errors.New("the page says that it fails")
		}
		return output, nil
	case b.Mark == Run && b.Commands():
		return r.Bash(ctx, b.Text)
	}
	return "", nil // not for this runner: test/docs checks that somebody has it
}

// repeat runs a block until it prints the output that the page shows next.
func (r *Runner) repeat(ctx context.Context, b Block, rest []Block) (string, error) {
	if len(rest) == 0 || rest[0].Mark != Output {
		return "", errors.New("no output is shown after what is repeated")
	}
	ctx, cancel := context.WithTimeout(ctx, blockTimeout)
	defer cancel()
	last := errors.New("it did not end")
	for {
		output, err := r.Bash(ctx, b.Text)
		if err == nil {
			err = Compare(rest[0].Text, r.restore(output))
		}
		if err == nil {
			return output, nil
		}
		if ctx.Err() == nil { // else it was killed, which says nothing
			last = err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return output, last
		}
	}
}

// Bash runs commands of a page after substitution. It ends at the first that fails.
func (r *Runner) Bash(ctx context.Context, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", r.substitute(commands))
	command.Dir, command.Env = r.Dir, r.Environment
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	return string(output), err
}

func (r *Runner) substitute(text string) string {
	for _, s := range r.Substitutions {
		text = strings.ReplaceAll(text, s.Page, s.Test)
	}
	return text
}

// restore turns what the test has into what the page has.
func (r *Runner) restore(text string) string {
	for _, s := range r.Substitutions {
		if len(s.Test) > 4 { // not a word that may be part of others
			text = strings.ReplaceAll(text, s.Test, s.Page)
		}
	}
	return text
}

var (
	traceID = regexp.MustCompile(`traceID [0-9a-f]{32}`)
	age     = regexp.MustCompile(`\b[0-9]+(ms|s|m|h|d)([0-9]+s)?\b`)
	digest  = regexp.MustCompile(`sha256:([0-9a-f]{64}|…)`)
)

// Compare returns an error unless what the page shows is part of what was printed. Line
// breaks, trace IDs, ages and digests may differ, and where the page shows "…" there may be
// anything.
func Compare(shown, printed string) error {
	want, got := normal(shown), normal(printed)
	rest, found := got, strings.Trim(want, "… ") != ""
	for part := range strings.SplitSeq(want, "…") {
		part = strings.TrimSpace(part)
		place := strings.Index(rest, part)
		if place < 0 {
			found = false
			break
		}
		rest = rest[place+len(part):]
	}
	if !found {
		return fmt.Errorf("the page shows\n%s\nand what was printed is\n%s", want, got)
	}
	return nil
}

func normal(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = traceID.ReplaceAllString(text, "traceID …")
	text = digest.ReplaceAllString(text, "sha256:…")
	return age.ReplaceAllString(text, "…")
}
