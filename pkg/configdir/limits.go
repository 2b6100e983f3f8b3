package configdir

import "time"

// Limits on what a directory may hold. Its owner is trusted, but a wrong path
// must not cost the process its memory.
const (
	maxFileBytes  = 1 << 20 // as etcd's limit for one object
	maxTotalBytes = 64 << 20
	maxFiles      = 10_000
	maxDepth      = 16
	maxDocuments  = 1000 // in one file

	// settle is waited after a change, so that the writing of several files is seen
	// as one.
	settle = 50 * time.Millisecond
	// rescan finds changes that no event told of, as on network file systems.
	rescan = 10 * time.Second
)
