package warm

import "time"

const (
	// maxWaiting bounds the images that wait, and maxWaitingEach those of one account: about 20
	// MiB and 300 KiB. Further ones are dropped and counted: images of running pods return at
	// their next renewal, and those with changed rules once there is space.
	maxWaiting     = 65536
	maxWaitingEach = 1024
	// maxImages is the number of images of one object that are verified. Pods have a few, but an
	// object may name thousands.
	maxImages = 64
	// maxUses is the number of containers and volumes of one object that are read: their images
	// may all be the same.
	maxUses = 64
	// workers is the warm-up concurrency. It is low on purpose: warm-up only uses spare
	// capacity.
	workers = 2
	// firstPause and longestPause bound the backoff of an undecided image. Each pause is twice
	// the previous one, with up to 50 % jitter.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// steps is the number of checks for due images per interval.
	steps = 60
	// followEvery is how often the rules of namespaces are compared with those with which their
	// images were verified. This only reads memory.
	followEvery = 2 * time.Second
	// maxEnds bounds the images that are verified when their exception ends. Others wait for
	// their renewal.
	maxEnds = 4096
)
