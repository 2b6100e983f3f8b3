package lint

import "strings"

// Nearest returns the candidate that a misspelt word most likely stands for: the first
// of those that the fewest edits lead to, at most a third of the word's length and two
// at least. Case does not count.
func Nearest(word string, candidates []string) (string, bool) {
	best, fewest := "", max(2, len(word)/3)+1
	for _, candidate := range candidates {
		if n := edits(strings.ToLower(word), strings.ToLower(candidate)); n < fewest && n < len(candidate) {
			best, fewest = candidate, n
		}
	}
	return best, best != ""
}

// edits returns how many characters must be inserted, removed or replaced to make a of b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
