package policy

import (
	"strings"
	"unicode"
)

const ellipsis = "…"

// Cut shortens s to at most limit bytes of valid UTF-8, with an ellipsis.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:max(limit-len(ellipsis), 0)], "") + ellipsis
}

// OneLine returns text that a stranger chose as one line: characters that control a
// terminal, show nothing or reorder what follows become spaces, so that nobody can forge a
// second line. The API server drops an admission warning with one.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
}

// Shown returns text that a stranger chose as one line of at most limit bytes.
func Shown(s string, limit int) string { return OneLine(Cut(s, limit)) }
