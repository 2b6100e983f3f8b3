package page

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mark is what a page's source says about a block.
type Mark string

// Marks of blocks.
const (
	Run     Mark = "run" // without a comment
	Fails   Mark = "fails"
	Repeat  Mark = "repeat"
	Output  Mark = "output"
	Save    Mark = "save as"
	StandIn Mark = "stand-in"
	AsIn    Mark = "as in"
	By      Mark = "by"
	NotRun  Mark = "not run"
)

// Block is a fenced block of a page.
type Block struct {
	Page     string // from the root, with slashes
	Section  string // the heading of the second level above it
	Part     string // the heading of the third level above it, within its section
	Line     int    // of the opening fence
	Language string
	Text     string // without the indentation of the fence
	Mark     Mark
	Name     string // the file, stand-in, page or test of the mark
	Why      string // the reason of the mark
}

// String returns where the block is.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Commands says whether the block is for a shell.
func (b Block) Commands() bool { return slices.Contains([]string{"", "sh", "bash"}, b.Language) }

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	mark  = regexp.MustCompile(`^ *<!-- test: (fails|repeat|output|save as|stand-in|as in|by|not run)(?: ([^ :]+))?(?:: (.+))? -->$`)
)

// Read returns the blocks of a page, which is named from the root.
func Read(root, name string) ([]Block, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	blocks, err := parse(string(text))
	for i := range blocks {
		blocks[i].Page = name
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return blocks, nil
}

func parse(text string) (blocks []Block, err error) {
	next := Block{Mark: Run}
	var open *Block
	indent, section, part := "", "", ""
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		found := fence.FindStringSubmatch(line)
		switch {
		case open != nil && found != nil && found[2] == "":
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case found != nil:
			indent = found[1]
			next.Line, next.Language, next.Section, next.Part = number, found[2], section, part
			opened := next
			open, next = &opened, Block{Mark: Run}
		case strings.HasPrefix(strings.TrimSpace(line), "<!-- test:"):
			if next, err = parseMark(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		case strings.HasPrefix(line, "## "):
			section, part = strings.TrimPrefix(line, "## "), ""
		case strings.HasPrefix(line, "### "):
			part = strings.TrimPrefix(line, "### ")
		case strings.TrimSpace(line) != "" && next.Mark != Run:
			return nil, fmt.Errorf("line %d: a mark must be right before its block", number)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.Line)
	}
	return blocks, nil
}

// parseMark reads a comment. Which of a name and a reason it must have depends on the mark.
func parseMark(line string) (Block, error) {
	found := mark.FindStringSubmatch(line)
	if found == nil {
		return Block{}, fmt.Errorf("%q is no mark that the package comment of test/kit/page lists", strings.TrimSpace(line))
	}
	b := Block{Mark: Mark(found[1]), Name: found[2], Why: found[3]}
	needs := map[Mark][2]bool{Save: {true, false}, StandIn: {true, true}, AsIn: {true, false}, By: {true, false}, NotRun: {false, true}}[b.Mark]
	if needs != [2]bool{b.Name != "", b.Why != ""} {
		return Block{}, fmt.Errorf("%q: a name belongs to save as, stand-in, as in and by, and a reason to stand-in and not run", strings.TrimSpace(line))
	}
	return b, nil
}
