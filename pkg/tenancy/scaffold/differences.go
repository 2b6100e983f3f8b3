package scaffold

import (
	"fmt"
	"strings"
)

// Limits of what is shown of a difference.
const (
	maxShown    = 20        // lines of one file
	maxCompared = 1_000_000 // pairs of lines: what is between the first difference and the last
)

// differences returns the lines that differ between two texts, those of before with a minus
// and those of after with a plus. The first line of a file that was generated is not shown.
// What may have a Secret is not shown either: the text goes to terminals and logs.
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

// linesOf returns the lines of a text without the one that says who generated it.
func linesOf(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range min(2, len(lines)) { // a script has it second
		if stampOf.MatchString(lines[i]) {
			return append(lines[:i:i], lines[i+1:]...)
		}
	}
	return lines
}

// changes compares two lists of lines by their longest common subsequence. Lists that are
// too long for that have nothing in common.
func changes(from, to []string) (shown []string) {
	var common [][]int // the length of the longest one from these lines on
	if len(from)*len(to) <= maxCompared {
		common = make([][]int, len(from)+1)
		for i := range common {
			common[i] = make([]int, len(to)+1)
		}
		for i := len(from) - 1; i >= 0; i-- {
			for j := len(to) - 1; j >= 0; j-- {
				common[i][j] = max(common[i+1][j], common[i][j+1])
				if from[i] == to[j] {
					common[i][j] = common[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case common != nil && i < len(from) && j < len(to) && from[i] == to[j]:
			i, j = i+1, j+1
		case i < len(from) && (common == nil || j == len(to) || common[i+1][j] >= common[i][j+1]):
			shown, i = append(shown, "- "+from[i]), i+1
		default:
			shown, j = append(shown, "+ "+to[j]), j+1
		}
	}
	return shown
}
