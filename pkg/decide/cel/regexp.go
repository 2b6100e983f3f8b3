package cel

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// RegexpSize returns an upper bound on the instructions of an expression in Go's syntax (RE2),
// before it is compiled: a short one can compile to a program of many megabytes. It returns an
// error if the expression cannot be read, is slow to parse, or is larger than
// [MaxRegexpInstructions]; the error says how to shorten it.
func RegexpSize(expression string) (int, error) {
	if len(expression) > MaxRegexpLength {
		return 0, fmt.Errorf("the regular expression is %d bytes long, the limit is %d; shorten it, or list several", len(expression),
			MaxRegexpLength)
	}
	if err := checkClasses(expression); err != nil {
		return 0, err
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the regular expression cannot be read: %w", err)
	}
	size := instructions(parsed)
	if size > MaxRegexpInstructions {
		return 0,
			fmt.Errorf("the regular expression compiles to about %d instructions, the limit is %d; repeat less, as in a+ for a{1,1000}, or use "+
				"fewer Unicode classes", size, MaxRegexpInstructions)
	}
	return size, nil
}

// RegexpBytes returns an upper bound on the memory that a regular expression of the given
// size keeps.
func RegexpBytes(size int) int { return regexpBytes + size*bytesPerInstruction }

// checkClasses refuses expressions that are slow to parse. It only scans the text, so it may
// count escaped characters.
func checkClasses(expression string) error {
	if n := strings.Count(expression, `\p`) + strings.Count(expression, `\P`); n > maxClasses {
		return fmt.Errorf("the regular expression has %d Unicode classes, the limit is %d", n, maxClasses)
	}
	if !ignoresCase(expression) {
		return nil
	}
	// The parser looks up the other cases of each character of a range.
	if strings.Contains(expression, `\x{`) || strings.ContainsFunc(expression, func(r rune) bool { return r > 0x7f }) {
		return errors.New("the regular expression ignores case and has characters outside of ASCII; remove (?i), or these characters")
	}
	return nil
}

// ignoresCase reports whether an expression may have the flag i.
func ignoresCase(expression string) bool {
	for _, group := range strings.Split(expression, "(?")[1:] {
		flags := strings.TrimLeft(group, "imsU-")
		if strings.Contains(group[:len(group)-len(flags)], "i") {
			return true
		}
	}
	return false
}

// instructions bounds the compiled program of a parsed expression. Classes count by
// their length.
func instructions(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size = max(size, len(re.Rune))
	case syntax.OpCharClass:
		size += len(re.Rune) / runesPerInstruction
	case syntax.OpRepeat:
		// The copies past the first Min are optional, each with one instruction more.
		size = max(re.Min+1, re.Max)*instructions(re.Sub[0]) + max(re.Max-re.Min, 1)
	case syntax.OpConcat, syntax.OpAlternate, syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		size = 1 + len(re.Sub)
		for _, sub := range re.Sub {
			size += instructions(sub)
		}
	case syntax.OpNoMatch, syntax.OpEmptyMatch, syntax.OpAnyCharNotNL, syntax.OpAnyChar, syntax.OpBeginLine, syntax.OpEndLine,
		syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
	}
	// The parser refuses more than 1,000 repeats in all, so this cannot overflow. The cap makes
	// it independent of the parser.
	return min(size, 1<<30)
}
