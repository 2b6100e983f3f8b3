package cel

import "github.com/landwaiter/landwaiter/pkg/formats/regex"

// Limits on one expression.
const (
	// maxExpression is the length of an expression in bytes.
	maxExpression = 8 << 10
	// maxNesting is how deep an expression may nest: the parser works recursively.
	maxNesting = 100
	// maxNodes is the number of nodes after macros are expanded: all has about 12. The
	// time to type-check grows with their square. The longest expression in use has 200.
	maxNodes = 1_000
	// maxLoops is how deep macros that look at every element may nest. A list in a list
	// takes two.
	maxLoops = 4
	// maxPrograms bounds the regular expressions of one expression together, in
	// instructions.
	maxPrograms = regex.MaxInstructions / 2
	// maxCost bounds one evaluation, in CEL's units. It is enough to visit each of some
	// 10,000 packages a few times, and is used up within a fifth of a second.
	maxCost = 500_000
	// stepsPerCost is how many instructions of a regular expression, each for one
	// character, cost one unit.
	stepsPerCost = 32
	// checkEvery is the number of iterations after which a deadline is noticed.
	checkEvery = 100
	// maxMessage is how much of the library's error is repeated, in bytes: it may quote
	// the expression.
	maxMessage = 300

	// baseBytes is what any compiled expression keeps, bytesPerByte what it keeps for
	// each byte of its text at most, and programBytes for its regular expressions.
	baseBytes    = 64 << 10
	bytesPerByte = 128
)
