package image

// MaxLength is the longest reference or pattern that is parsed, in bytes. A tagged
// and digested reference with a 255-byte name stays far below it.
const MaxLength = 1024

// maxPatternSegments bounds the work of one match.
const maxPatternSegments = 32
