package policy

import "strings"

// Nearest returns the candidate that a misspelt word most likely means: the first of those
// with the smallest edit distance, which is at most two or a third of the word's length,
// whichever is larger. It ignores case.
func Nearest(word string, candidates []string) (string, bool) {
	best, fewest := "", max(2, len(word)/3)+1
	for _, candidate := range candidates {
		if n := edits(strings.ToLower(word), strings.ToLower(candidate)); n < fewest && n < len(candidate) {
			best, fewest = candidate, n
		}
	}
	return best, best != ""
}

// edits returns the Levenshtein distance of two words: the number of characters to insert, remove or
// replace.
func edits(from, to string) int {
	target := []rune(to)
	fewest := make([]int, len(target)+1) // from what was read of from to each beginning of target
	for j := range fewest {
		fewest[j] = j
	}
	for _, r := range from {
		replaced := fewest[0]
		fewest[0]++
		for j, t := range target {
			if r != t {
				replaced++
			}
			replaced, fewest[j+1] = fewest[j+1], min(replaced, fewest[j]+1, fewest[j+1]+1)
		}
	}
	return fewest[len(target)]
}
