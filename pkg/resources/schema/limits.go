package schema

import "time"

const (
	// maxRefusal bounds the text of a refusal, in bytes: it is kept in memory instead of the
	// spec, and quotes values that a tenant wrote.
	maxRefusal = 1 << 10
	// maxFaults bounds the errors of the values of one object.
	maxFaults = 100
	// keepUnused is the minimum time for which an unused schema is kept. The maximum is twice as
	// long.
	keepUnused = time.Minute
)
