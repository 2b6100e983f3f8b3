package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// cut returns at most limit bytes of s, as valid UTF-8, and marks what is
// missing.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// shown returns what a client sent in a form that is safe in texts and logs:
// short, quoted, on one line, ASCII.
func shown(s string) string { return strconv.QuoteToASCII(cut(s, maxShownKeyBytes)) }

// oneLine returns s without control characters. An admission warning that holds
// one is dropped by the API server, and a denial has one line for each image.
func oneLine(s string) string {
	if strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// reasonRoom is how long each reason of an answer with so many denied images may
// be, in bytes: the whole text must stay readable.
func reasonRoom(denied int) int {
	return max(minReasonBytes, min(maxReasonBytes, maxReasonsBytes/max(denied, 1)))
}

// undecidedText writes the system error of a request that was not decided in whole: a line
// that says to try again, then one for each undecided key, and one for each that is
// denied anyway, as many as fit. Lines are sorted, since templates sort them.
func undecidedText(p plan, decisions []decision) string {
	var undecided, denied []string
	for _, k := range p.keys {
		outcome, reason := k.outcome(decisions)
		entry := fmt.Sprintf("%s %s: %s", outcome, shown(k.key), cut(oneLine(reason), maxReasonBytes))
		switch outcome {
		case KeyAllowed, KeyWarned:
		case KeyUndecided:
			undecided = append(undecided, entry)
		case KeyDenied, KeyInvalid:
			denied = append(denied, entry)
		}
	}
	head := fmt.Sprintf("%d of %d images could not be decided, try again", len(undecided), len(p.keys))
	const more = "… and %d more" // sorts behind every other line
	room := maxSystemErrorBytes - len(head) - len(more) - len("\n")
	entries := append(undecided, denied...)
	fit := 0
	for fit < len(entries) && len("\n")+len(entries[fit]) <= room {
		room -= len("\n") + len(entries[fit])
		fit++
	}
	lines := append([]string{head}, slices.Sorted(slices.Values(entries[:fit]))...)
	if fit < len(entries) {
		lines = append(lines, fmt.Sprintf(more, len(entries)-fit))
	}
	return strings.Join(lines, "\n")
}
