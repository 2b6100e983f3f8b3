package provider

import (
	"fmt"
	"strconv"
	"strings"
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

// doubt writes the system error of a request that was not decided in whole: the
// undecided keys, then those that are denied anyway, each with its reason, as
// many as fit.
func doubt(p plan, decisions []decision) string {
	var undecided, denied []string
	for _, q := range p.questions {
		outcome, reason := q.outcome(decisions)
		entry := fmt.Sprintf("%s %s: %s", outcome, shown(q.key), cut(reason, maxReasonBytes))
		switch outcome {
		case keyAllowed, keyWarned:
		case keyUndecided:
			undecided = append(undecided, entry)
		case keyDenied, keyInvalid:
			denied = append(denied, entry)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d keys could not be decided, try again", len(undecided), len(p.questions))
	separator := ": "
	entries := append(undecided, denied...)
	for i, entry := range entries {
		const room = len("; and 512 more")
		if text.Len()+len(separator)+len(entry) > maxSystemErrorBytes-room {
			fmt.Fprintf(&text, "; and %d more", len(entries)-i)
			break
		}
		text.WriteString(separator)
		text.WriteString(entry)
		separator = "; "
	}
	return text.String()
}
