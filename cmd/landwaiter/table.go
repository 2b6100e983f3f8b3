package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Layout of tables, in characters.
const (
	tableWidth  = 120
	columnWidth = 48 // of a column before the last, unless it has a longer word
	lastWidth   = 40 // what the last column needs beside the others; with less it goes below them
	gap         = 2
)

// table lays out lines whose cells are separated by tabs, as text/tabwriter does, within
// tableWidth. Lines without a tab separate tables.
type table struct {
	bytes.Buffer
	out   io.Writer
	paint bool
}

func newTable(out io.Writer) *table { return &table{out: out, paint: isTerminal(out)} }

// isTerminal reports whether out is a terminal whose user wants colour (no-color.org).
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Flush writes the tables.
func (t *table) Flush() error {
	var text strings.Builder
	var rows [][]string
	for line := range strings.Lines(t.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		t.block(&text, rows)
		rows = nil
		text.WriteString(line + "\n")
	}
	t.block(&text, rows)
	t.Reset()
	_, err := io.WriteString(t.out, text.String())
	return err
}

// block lays out the rows of one table.
func (t *table) block(text *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			for _, line := range wrap(cell, columnWidth) {
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
			cells[i] = wrap(cell, columnWidth)
		}
		last, beside := row[len(row)-1], tableWidth-start >= lastWidth
		if beside {
			cells[len(row)-1] = wrap(last, tableWidth-start)
		}
		t.row(text, cells, widths)
		if beside {
			continue
		}
		for _, line := range wrap(last, tableWidth-2*gap) {
			fmt.Fprintf(text, "%*s%s\n", 2*gap, "", line)
		}
	}
}

// row writes the lines of one row.
func (t *table) row(text *strings.Builder, cells [][]string, widths []int) {
	for n := 0; ; n++ {
		var line strings.Builder
		more := false
		for i, cell := range cells {
			part := ""
			if n < len(cell) {
				part, more = cell[n], true
			}
			line.WriteString(t.colour(part))
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

// colour paints a cell that is an outcome, such as "ALLOWED (warning)", on terminals.
func (t *table) colour(cell string) string {
	outcome, _, _ := strings.Cut(cell, " (")
	code := map[string]string{"ALLOWED": "32", "DENIED": "31", "UNDECIDED": "33"}[outcome]
	if !t.paint || code == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}

// wrap cuts text at spaces into lines of at most width characters. A longer word has a
// line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
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
