package cel

import "time"

// Limits on one expression.
const (
	// maxExpression is the length of an expression in bytes.
	maxExpression = 8 << 10
	// maxNesting is the nesting depth of an expression: the parser is recursive.
	maxNesting = 100
	// maxNodes is the number of nodes after macros are expanded: all has about 12. The
	// time to type-check grows with their square. The longest expression in use has 200.
	maxNodes = 1_000
	// maxLoops is the nesting depth of macros that iterate. A list in a list takes two.
	maxLoops = 4
	// maxPrograms bounds the regular expressions of one expression together, in
	// instructions.
	maxPrograms = MaxRegexpInstructions / 2
	// maxCost bounds one evaluation, in CEL's units. It is enough to visit each of some
	// 10,000 packages a few times, and is used up within a fifth of a second.
	maxCost = 500_000
	// maxTime bounds one evaluation that is slow for its cost, without the time in which it
	// yields to others.
	maxTime = time.Second
	// maxValues bounds the values of one evaluation together, in CEL's units: one function that
	// reads all of them takes about 60 ms. An SBOM of 8 MiB has up to 520,000.
	maxValues = 600_000
	// maxKey is the length in bytes of a text in an expression that computes keys: looking up a
	// key reads all of it, but costs one unit.
	maxKey = 16 << 10
	// maxTimestamp is the length in bytes of a text that is converted into a timestamp. RFC 3339 takes 35
	// with nanoseconds.
	maxTimestamp = 64
	// bytesPerCost is how many bytes of a text cost one unit.
	bytesPerCost = 64
	// zoneCost is the cost of a time zone: Go reads it from a file each time.
	zoneCost = 200
	// stepsPerCost is how many instructions of a regular expression, each for one
	// character, cost one unit.
	stepsPerCost = 32
	// stepEvery is the number of calls and iterations between two steps, which yield to others
	// and check the deadline.
	stepEvery = 16
	// maxMessage is the length of the library's error that is quoted, in bytes: the error may
	// quote the expression.
	maxMessage = 300

	// baseBytes is the memory that any compiled expression keeps, bytesPerByte the most that it
	// keeps for each byte of its text, and programBytes for its regular expressions.
	baseBytes    = 64 << 10
	bytesPerByte = 128
)

// Limits on one regular expression, here or in an identity. A repeat multiplies its operand, so
// the length of the text says little about the memory.
const (
	// MaxRegexpLength is the length of a regular expression in bytes, as the resource types have it.
	MaxRegexpLength = 1024
	// MaxRegexpInstructions bounds the compiled program: enough for MaxRegexpLength literal
	// characters twice over. An identity with a repository, a workflow and a tag takes
	// about 100.
	MaxRegexpInstructions = 2 * MaxRegexpLength
	// runesPerInstruction is the number of bounds of a character class that count as one
	// instruction: compiling copies the classes of an anchored expression.
	runesPerInstruction = 8
	// maxClasses bounds the Unicode classes: each is a table of some 1,000 ranges, which
	// parsing copies and sorts.
	maxClasses = 8

	// bytesPerInstruction is the most memory that a compiled regular expression keeps for each
	// instruction, and regexpBytes its fixed part.
	bytesPerInstruction = 160
	regexpBytes         = 4 << 10
)
