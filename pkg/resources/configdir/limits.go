package configdir

import "time"

// Limits on the directory's content, so that a wrong mount or a hostile file
// causes an error and does not exhaust memory or CPU.
const (
	maxFileBytes  = 4 << 20  // an object has at most about 1 MiB; kubectl prints about 4 MiB for 300 namespaces
	maxTotalBytes = 64 << 20 // of all files together: 1,000 namespaces have about 4 MiB
	maxEntries    = 10_000   // files and directories of any name
	maxDepth      = 16       // nested directories
	maxDocuments  = 1_000    // in one file
	maxItems      = 5_000    // in one list: 4 MiB have fewer resources
	maxMarks      = 600_000  // characters of one document that may begin a YAML node, before it is parsed: a node takes about 200 bytes
	maxNodes      = 500_000  // YAML nodes of one document with aliases expanded: 4 MiB of kubectl output have fewer
	maxExpanded   = 8 << 20  // bytes of one document's values with aliases expanded
	maxNesting    = 100      // nested YAML collections; resources have about 10
	maxReported   = 20       // errors of a first load that are listed
)

// Timing of reloads.
const (
	debounce    = 50 * time.Millisecond  // quiet time after an event: an editor writes several times
	maxDebounce = 500 * time.Millisecond // longest wait for a change, even if events keep coming
	// the pause after a reload, as a multiple of its duration: continuous edits take a fifth of a processor
	restParts    = 4
	rescan       = 10 * time.Second // for changes without an event (network file systems, a replaced directory)
	scanAttempts = 5                // while a mounted volume is being swapped
)
