package schema

const (
	// maxRefusal bounds the text of a refusal, in bytes: it is kept in memory in place of the
	// spec, and quotes values that a tenant wrote.
	maxRefusal = 1 << 10
	// maxFaults bounds the errors of one object.
	maxFaults = 100
	// manyValues is how many values a large object has: maps, lists and scalars.
	manyValues = 500
	// maxRuleCost and maxCost bound one rule and all rules of an object, in CEL's units, as an
	// API server does (k8s.io/apiserver/pkg/apis/cel).
	maxRuleCost = 1_000_000
	maxCost     = 10_000_000
)
