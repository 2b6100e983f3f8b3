package image

// MaxLength is the longest reference or pattern that is parsed, in bytes. A tagged
// and digested reference with a 255-byte name stays far below it.
const MaxLength = 1024

// maxPatternSegments bounds the work of one match.
const maxPatternSegments = 32

// maxHostLength is the longest DNS name (RFC 1035, section 2.3.4). It keeps a normalised
// reference, with the tag and path that normalising adds, below MaxLength.
const maxHostLength = 253
