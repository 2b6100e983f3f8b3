package intoto

// Limits on one statement.
const (
	// maxStatement is the size of a statement in bytes. SBOMs are the large ones.
	maxStatement = 4 << 20
	// maxDepth is how deep the JSON of a statement may nest. The components of an SBOM
	// nest.
	maxDepth = 64
)
