package page

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// blank is a letter of Braille that looks like a space.
const blank = '\u2800'

// visible shows characters that control, reorder or hide text by their code point. It is applied to
// whole documents, so that no view can forget it.
func visible(document string) string {
	hidden := func(r rune) bool { return (!unicode.IsPrint(r) || r == blank) && r != '\n' && r != '\t' }
	document = strings.ToValidUTF8(document, "\uFFFD")
	if strings.IndexFunc(document, hidden) < 0 {
		return document
	}
	var b strings.Builder
	for _, r := range document {
		if hidden(r) {
			fmt.Fprintf(&b, "‹U+%04X›", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// long is a text that may be folded.
type long struct{ Short, All string }

// folded returns a stranger's text: its beginning and, if that is not all, the text up to a limit.
func folded(text string) long {
	if len(text) <= shortText {
		return long{Short: text}
	}
	return long{Short: policy.Cut(text, shortText), All: policy.Cut(text, maxText)}
}
