package schema

import "time"

const (
	// maxRefusal bounds the text of a refusal, in bytes: it is kept in memory in place of the
	// spec, and quotes values that a tenant wrote.
	maxRefusal = 1 << 10
	// maxFaults bounds the errors of the values of one object.
	maxFaults = 100
	// keepUnused is how long a schema is kept at least, and half as long as it is kept at most.
	keepUnused = time.Minute
)
