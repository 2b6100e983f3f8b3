package report

import (
	"strings"
	"time"
	"unicode"
)

const ellipsis = "…"

// clean returns text that strangers chose as a line of at most limit bytes: no control
// characters, and none that show nothing or reorder what follows.
func clean(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit-len(ellipsis)]
		s = strings.ToValidUTF8(s, "") + ellipsis
	}
	s = strings.ToValidUTF8(s, " ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// stamp returns a time as properties have it, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// parseStamp reads what stamp wrote. What it did not write is the zero time.
func parseStamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
