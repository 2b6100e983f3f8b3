package warm

import "time"

const (
	// maxWaiting bounds the images that wait, and maxWaitingEach those of one account:
	// about 20 MiB and 300 KiB. More are dropped and counted: images of running pods
	// come back at their next renewal, and those whose rules changed once there is room.
	maxWaiting     = 65536
	maxWaitingEach = 1024
	// maxImages is how many images of one object are verified. Pods have a few, but an
	// object may name thousands.
	maxImages = 64
	// maxUses is how many containers and volumes of one object are looked at: their images
	// may all be the same.
	maxUses = 64
	// workers is the warm-up concurrency. It is low on purpose: warm-up only uses spare
	// capacity.
	workers = 2
	// firstPause and longestPause bound the backoff of an undecided image. Each pause is
	// twice the one before, with up to 50 % jitter.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// steps is how often per interval due images are looked for.
	steps = 60
	// followEvery is how often the rules of namespaces are compared with those that their
	// images were verified by. It reads memory alone.
	followEvery = 2 * time.Second
	// maxEnds bounds the images whose exception ends and is looked at when it does. Others
	// wait for their renewal.
	maxEnds = 4096
)
