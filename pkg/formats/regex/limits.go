package regex

// Limits on one regular expression. A repeat multiplies what it repeats, so the length
// of the text says little about what is kept.
const (
	// MaxLength is the length of an expression in bytes, as the resource types have it.
	MaxLength = 1024
	// MaxInstructions bounds the compiled program: enough for MaxLength literal
	// characters twice over. An identity with a repository, a workflow and a tag takes
	// about 100.
	MaxInstructions = 2 * MaxLength
	// runesPerInstruction is how many limits of a character class weigh as much as one
	// instruction: compiling copies the classes of an anchored expression.
	runesPerInstruction = 8
	// maxClasses bounds the Unicode classes: each is a table of some 1,000 ranges, which
	// parsing copies and sorts.
	maxClasses = 8

	// bytesPerInstruction is what a compiled expression keeps at most for each
	// instruction, and baseBytes for itself.
	bytesPerInstruction = 160
	baseBytes           = 4 << 10
)
