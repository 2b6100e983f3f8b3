package image

// MaxLength is the longest reference or pattern that is parsed, in bytes. A tagged
// and digested reference with a 255-byte name stays far below it.
const MaxLength = 1024

const (
	// maxPatternSegments bounds the work of one match. Registries nest repositories
	// twenty deep at most.
	maxPatternSegments = 32
	// maxRepository is the longest repository of a reference, in bytes, and maxSegments
	// the number of segments that fit in it. Both are only for [Pattern.Cost].
	maxRepository = 255
	maxSegments   = (maxRepository + 1) / 2
)
