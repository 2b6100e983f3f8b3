package scaffold

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Limits of what is shown of a difference.
const (
	maxShown    = 20        // lines of one file
	maxCompared = 1_000_000 // pairs of lines between the first difference and the last
)

// differences returns the lines that differ between two texts, those of before with a minus
// and those of after with a plus. It omits the first line of a generated file, and texts that
// may contain a Secret: the result goes to terminals and logs.
func differences(before, after string) []string {
	if privateKey.MatchString(before) || strings.Contains(before, "kind: Secret") {
		return []string{"it may have a Secret, so its lines are not shown"}
	}
	from, to := linesOf(before), linesOf(after)
	for len(from) > 0 && len(to) > 0 && from[0] == to[0] {
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	shown := changes(from, to)
	if len(shown) == 0 {
		return []string{"only its first line"}
	}
	if len(shown) > maxShown {
		shown = append(shown[:maxShown], fmt.Sprintf("and %d lines more", len(shown)-maxShown))
	}
	return shown
}

// linesOf returns the lines of a text without the line that marks it as generated.
func linesOf(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range min(2, len(lines)) { // a script has it second
		if stampOf.MatchString(lines[i]) {
			return append(lines[:i:i], lines[i+1:]...)
		}
	}
	return lines
}

// changes compares two lists of lines. If the lists are too long, it treats them as completely
// different.
func changes(from, to []string) (shown []string) {
	parts := []difflib.OpCode{{Tag: 'r', I2: len(from), J2: len(to)}}
	if len(from)*len(to) <= maxCompared {
		parts = difflib.NewMatcherWithJunk(from, to, false, nil).GetOpCodes()
	}
	for _, part := range parts {
		if part.Tag == 'e' { // they are equal
			continue
		}
		for _, line := range from[part.I1:part.I2] {
			shown = append(shown, "- "+line)
		}
		for _, line := range to[part.J1:part.J2] {
			shown = append(shown, "+ "+line)
		}
	}
	return shown
}
