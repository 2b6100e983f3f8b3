package policy

import (
	"regexp"
	"strings"
)

// remedyWords begin the remedies that reasons about a registry end with.
var remedyWords = regexp.MustCompile(`^(?:add|correct|have|renew|serve|set|start) `)

// RemedyOf returns the remedy that a reason ends with, after its last semicolon, "" if it names none but another
// try. Events carry only the reason of an undecided image, so reports have no other source for it.
func RemedyOf(reason string) string {
	reason, _, _ = strings.Cut(reason, " (looked at ")
	at := strings.LastIndex(reason, "; ")
	if remedy := reason[at+1:]; at >= 0 && remedyWords.MatchString(strings.TrimSpace(remedy)) {
		return strings.TrimSpace(remedy)
	}
	return ""
}
