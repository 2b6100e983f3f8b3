package cel

// Limits on one expression.
const (
	// maxExpression is the length of an expression in bytes.
	maxExpression = 8 << 10
	// maxCost bounds one evaluation, in CEL's units. It is enough to visit each of some
	// 10,000 packages a few times, and is used up within a fifth of a second.
	maxCost = 500_000
	// checkEvery is the number of iterations after which a deadline is noticed.
	checkEvery = 100
)
