package configdir

import "time"

// What is read from the directory is bounded, so that a wrong mount or a hostile
// file ends in an error and not in an exhausted process.
const (
	maxFileBytes  = 1 << 20  // what Kubernetes allows for one object, and more than a page of YAML needs
	maxTotalBytes = 64 << 20 // of all files together: 1,000 namespaces have about 4 MiB
	maxEntries    = 10_000   // files and directories of any name
	maxDepth      = 16       // directories below each other; far more than anybody sorts by
	maxDocuments  = 1_000    // in one file
	maxNodes      = 200_000  // YAML nodes of one document once its aliases are followed: 1 MiB has fewer without
	maxNesting    = 100      // YAML collections within each other; resources have about 10
	maxReported   = 20       // errors of a first load that are spelled out
)

// When a change is looked at.
const (
	debounce     = 50 * time.Millisecond  // quiet time after an event: an editor writes several times
	maxDebounce  = 500 * time.Millisecond // a change waits no longer, even if others follow without end
	rescan       = 10 * time.Second       // for changes without an event (network file systems, a directory made again)
	scanAttempts = 5                      // while a mounted volume is being swapped
)
