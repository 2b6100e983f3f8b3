package lint

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the candidate that a misspelt word most likely stands for: the first
// of those that the fewest edits lead to, at most a third of the word's length and two
// at least. Case does not count.
func Nearest(word string, candidates []string) (string, bool) {
	best, fewest := "", max(2, len(word)/3)+1
	for _, candidate := range candidates {
		if n := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(candidate)); n < fewest && n < len(candidate) {
			best, fewest = candidate, n
		}
	}
	return best, best != ""
}
