package program

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// maxText bounds one text, in bytes.
const maxText = 2048

// blank is a letter of Braille that looks like a space.
const blank = '\u2800'

// OneLine returns text in one line and without control characters. Tabs and line ends become
// spaces.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r) && r != blank:
			return r
		case r == '\n' || r == '\t':
			return ' '
		}
		return '\uFFFD'
	}, text)
}

// Plain is [OneLine] for text of any length, shortened to 2 KiB.
func Plain(text string) string { return OneLine(policy.Cut(text, maxText)) }

// Say writes one line, such as a warning. Names, reasons and errors come from tenants, files
// and servers, so Say makes the line printable.
func Say(out io.Writer, format string, args ...any) {
	_, _ = io.WriteString(out, OneLine(fmt.Sprintf(format, args...))+"\n") // if a warning cannot be written, neither can this error
}

// SayLines writes text of several lines, such as joined errors. It indents lines after the
// first, so that none can be mistaken for a row of a table.
func SayLines(out io.Writer, text string) {
	indent := ""
	for line := range strings.SplitSeq(text, "\n") {
		Say(out, "%s%s", indent, Plain(line))
		indent = "  "
	}
}
