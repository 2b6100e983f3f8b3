package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

// Layout of tables, in characters.
const (
	tableWidth  = 120
	columnWidth = 48 // of a column before the last, unless it has a longer word
	lastWidth   = 40 // space that the last column needs in the row; otherwise it goes below
	gap         = 2
)

// screen writes lines and tables for people. Names, reasons and errors come from tenants, files
// and servers, so it makes every line and cell printable. Only it and document write to a terminal,
// which a linter holds (.golangci.yml).
type screen struct {
	out   io.Writer
	paint bool
	wide  bool // no cell wraps
	text  strings.Builder
	rows  [][]string // of the table that the next line ends
}

func newScreen(out io.Writer) *screen { return &screen{out: out, paint: isTerminal(out)} }

// shown is a result that a command prints: its fields in JSON, or for people on a screen.
type shown interface{ show(s *screen) }

// show writes a result for people.
func show(out io.Writer, value shown) error {
	s := newScreen(out)
	value.show(s)
	return s.flush()
}

// document writes output for other programs, unchanged: its source escapes control characters.
func document(out io.Writer, text []byte) error {
	_, err := out.Write(text)
	return program.Failed(err)
}

// row adds a row to a table, which is laid out within tableWidth.
func (s *screen) row(cells ...any) {
	s.rows = append(s.rows, mapped(cells, func(cell any) string { return program.Plain(fmt.Sprint(cell)) }))
}

// line adds one line, which is not wrapped, and ends the previous table.
func (s *screen) line(format string, args ...any) {
	s.endTable()
	s.text.WriteString(program.OneLine(fmt.Sprintf(format, args...)) + "\n")
}

// section adds the title of a section, after an empty line.
func (s *screen) section(title string, args ...any) {
	s.line("")
	s.line(title, args...)
}

// wrapped adds text that is wrapped, each line but the first after indent.
func (s *screen) wrapped(first, indent, text string) {
	s.endTable()
	s.text.WriteString(first + strings.Join(wrap(program.OneLine(text), tableWidth-utf8.RuneCountInString(indent)), "\n"+indent) + "\n")
}

// flush writes everything that was added.
func (s *screen) flush() error {
	s.endTable()
	_, err := io.WriteString(s.out, s.text.String())
	s.text.Reset()
	return err
}

func (s *screen) endTable() {
	if len(s.rows) > 0 {
		s.block(&s.text, s.rows)
		s.rows = nil
	}
}

// isTerminal reports whether out is a terminal whose user wants colors (no-color.org).
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// block lays out the rows of one table.
func (s *screen) block(text *strings.Builder, rows [][]string) {
	limit, total := columnWidth, tableWidth
	if s.wide {
		limit, total = math.MaxInt, math.MaxInt
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			for _, line := range wrapCell(i, cell, limit) {
				widths[i] = max(widths[i], utf8.RuneCountInString(line))
			}
		}
	}
	start := 0
	for _, width := range widths {
		start += width + gap
	}
	for _, row := range rows {
		cells := make([][]string, len(row))
		for i, cell := range row[:len(row)-1] {
			cells[i] = wrapCell(i, cell, limit)
		}
		last, beside := row[len(row)-1], total-start >= lastWidth
		if beside {
			cells[len(row)-1] = wrap(last, total-start)
		}
		s.layOut(text, cells, widths)
		if beside {
			continue
		}
		for _, line := range wrap(last, tableWidth-2*gap) {
			fmt.Fprintf(text, "%*s%s\n", 2*gap, "", line)
		}
	}
}

// wrapCell is [wrap] for a cell. In the first column, it indents all lines but the first, so that text
// cannot be mistaken for a row.
func wrapCell(column int, text string, width int) []string {
	if column > 0 {
		return wrap(text, width)
	}
	lines := wrap(text, width-gap)
	for i := range lines[1:] {
		lines[i+1] = strings.Repeat(" ", gap) + lines[i+1]
	}
	return lines
}

// layOut writes the lines of one row.
func (s *screen) layOut(text *strings.Builder, cells [][]string, widths []int) {
	for n := 0; ; n++ {
		var line strings.Builder
		more := false
		for i, cell := range cells {
			part := ""
			if n < len(cell) {
				part, more = cell[n], true
			}
			line.WriteString(s.colour(part))
			if i < len(widths) && i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(part)+gap))
			}
		}
		if !more {
			return
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// colour colors a cell with an outcome, such as "ALLOWED (warning)", on terminals.
func (s *screen) colour(cell string) string {
	outcome, _, _ := strings.Cut(cell, " (")
	code := map[string]string{"ALLOWED": "32", "DENIED": "31", "UNDECIDED": "33"}[outcome]
	if !s.paint || code == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}

// wrap breaks text at spaces into lines of at most width characters. A longer word gets its
// own line, and so does a longer command to copy.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range copyable(strings.Fields(text)) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// copyable joins the words of commands, each from its program, after a colon, up to a
// semicolon or the end.
func copyable(words []string) []string {
	programs := []string{"kubectl", "cosign", "notation", "landwaiter"}
	var joined []string
	command := false
	for i, word := range words {
		switch {
		case command:
			joined[len(joined)-1] += " " + word
		case i > 0 && strings.HasSuffix(words[i-1], ":") && slices.Contains(programs, word):
			joined, command = append(joined, word), true
		default:
			joined = append(joined, word)
		}
		command = command && !strings.HasSuffix(word, ";")
	}
	return joined
}
