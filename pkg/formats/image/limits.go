package image

// MaxLength is the longest reference or pattern that is parsed, in bytes. A tagged
// and digested reference with a 255-byte name stays far below it.
const MaxLength = 1024

const (
	// maxHostLength is the longest DNS name (RFC 1035, section 2.3.4). It keeps a
	// normalised reference, with the tag and path that normalising adds, below MaxLength.
	maxHostLength = 253
	// maxPatternSegments bounds the work of one match. Registries nest repositories
	// twenty deep at most.
	maxPatternSegments = 32
	// maxRepository is the longest repository of a reference, in bytes, and maxSegments is its
	// largest number of segments. Only [Pattern.Cost] uses them.
	maxRepository = 255
	maxSegments   = (maxRepository + 1) / 2
)
