package warm

import "time"

const (
	// maxWaiting bounds the images that wait, of all namespaces, and maxWaitingEach
	// those of one: about 20 MiB and 300 KiB. What is past it is counted as dropped;
	// images of running pods come back at their next renewal.
	maxWaiting     = 65536
	maxWaitingEach = 1024
	// maxImages is how many images of one object are looked at. Pods have a few, and
	// an object may name thousands.
	maxImages = 64
	// workers is how many images are verified at a time, of different namespaces:
	// this is nobody's turn but that of what is left.
	workers = 2
	// firstPause and longestPause are between two tries of an image that could not be
	// decided; each is twice the one before, and up to half as long again by chance.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// steps is how many times within an interval it is looked which images are due.
	steps = 60
)
