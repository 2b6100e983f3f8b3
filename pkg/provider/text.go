package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// cut shortens s to at most limit bytes of valid UTF-8 and an ellipsis.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// shown quotes what a client sent for messages and logs: short, on one line, ASCII.
func shown(s string) string { return strconv.QuoteToASCII(cut(s, maxShownKeyBytes)) }

// oneLine replaces control characters by spaces. The API server drops an admission
// warning with one, and a denial has one line per image.
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

// reasonRoom returns the limit in bytes for each reason of an answer with that many
// denied images, so that the whole text stays readable.
func reasonRoom(denied int) int {
	return max(minReasonBytes, min(maxReasonBytes, maxReasonsBytes/max(denied, 1)))
}

// undecidedText returns the system error of a request with undecided keys: a line
// that says to try again, then a line per undecided key and per denied key, as many
// as fit. It sorts the lines, because templates do too.
func undecidedText(p plan, decisions []decision) string {
	var undecided, denied []string
	for _, k := range p.keys {
		outcome, reason := k.outcome(decisions)
		entry := fmt.Sprintf("%s %s: %s", outcome, shown(k.key), cut(oneLine(reason), maxReasonBytes))
		switch outcome {
		case KeyAllowed, KeyUnverified, KeyWarned:
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
