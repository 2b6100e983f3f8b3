package watch

import "time"

const (
	// firstPause is the first and maxPause the longest pause after a failed watch of an object.
	// A new permission takes effect within one and a half times maxPause: pauses are jittered.
	firstPause = 250 * time.Millisecond
	maxPause   = 15 * time.Second
	// shortWatch is the lifetime up to which a watch counts as failed.
	shortWatch = time.Second
)
