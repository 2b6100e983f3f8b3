package report

import "time"

const (
	// maxObjectBytes bounds the results of one report, so that the object stays far below
	// the 1.5 MiB of a request to etcd.
	maxObjectBytes = 512 << 10
	// runningBytes and deniedBytes bound the results of all namespaces of an account, which
	// share them evenly. minBytes is the minimum for a namespace.
	runningBytes = 2 << 20
	deniedBytes  = 256 << 10
	minBytes     = 16 << 10
	// maxResultBytes bounds one result: a larger one is left out. minResultBytes is less than
	// any result takes, to detect early that no more fit.
	maxResultBytes = 32 << 10
	minResultBytes = 256
	// maxImages is the number of images of one account whose verdicts are kept: up to 4 KB each,
	// on every replica, and again by the leader.
	maxImages = 4096
	// maxLeftOut is the number of omitted rows that are distinguished, so that each is counted
	// once: 8 bytes each. Further ones are not counted.
	maxLeftOut = 100_000
	// maxDenials is the number of images in a namespace's report on denials: the most recently
	// denied ones.
	maxDenials = 200
	// maxResults is the number of results that are read of a report: Landwaiter's have no more.
	maxResults = 10_000
	// maxCounters bounds the counters of one denial. Further ones are summed: replicas come and
	// go with every rollout.
	maxCounters = 48
	// maxWorkloads is the number of workloads to which a denial is matched.
	maxWorkloads = 10
	// maxCount bounds the value of one counter, so that a forged one does not overflow.
	maxCount = 1 << 40

	// keepDenials is how long a denial is reported after it last occurred.
	keepDenials = 7 * 24 * time.Hour
	// idleCounter is when a replica begins a new counter for an image, and endedCounter when the
	// leader merges an old one: no replica continues it by then.
	idleCounter  = 30 * time.Minute
	endedCounter = 2 * time.Hour
	// maxAhead is how far the clock of another replica may be ahead.
	maxAhead = 5 * time.Minute

	// lookedEvery is the largest age of the time at which an image was verified in a report, which is then written
	// again.
	lookedEvery = 10 * time.Minute
	// undecidedFor is how long an image may be undecided before its last result is replaced by
	// an error: in a registry's outage of minutes, nothing has changed.
	undecidedFor = 5 * time.Minute
	// undecidedNew is the corresponding time for an image without an earlier result.
	undecidedNew = 30 * time.Second
	// goneFor is how long a container stays in the report after its last pod: CronJobs and
	// restarted pods come back.
	goneFor = 2 * time.Minute

	// Bounds of strangers' texts, in bytes.
	maxImageBytes       = 1024 // as long as a reference may be
	maxReasonBytes      = 700
	maxRemediationBytes = 500
	maxCommandBytes     = 1000 // of all policies that deny
	maxContactBytes     = 512
	maxNameBytes        = 256
	maxSignersBytes     = 512
	// maxSigners is the number of signers of an image that are named.
	maxSigners = 5
	// maxNoteBytes bounds the annotation of an Event that is read.
	maxNoteBytes = 8 << 10
	// maxMessageBytes is the longest message of an Event.
	maxMessageBytes = 1000

	// A replica counts denials of maxPending images at a time, maxPendingEach for one
	// account. Further images of a namespace are counted as one.
	maxPending     = 8192
	maxPendingEach = 64
	// A replica counts undecided images of maxPendingRegistries registries at a time, counted in
	// each namespace, and of maxRegistriesEach for one account. A namespace's report has at most
	// maxRegistries. Further registries of a namespace are counted together.
	maxPendingRegistries = 4096
	maxRegistriesEach    = 32
	maxRegistries        = 16
	// registryEvery is the pause between two writes about one registry, and keepRegistry how long it
	// stays in a report after its last refused image: a ReplicaSet retries after 17 minutes at the
	// latest.
	registryEvery = time.Minute
	keepRegistry  = time.Hour
	// noteEvery is the interval at which counters are checked. The first denial of an image is
	// written immediately; a replica's later counts are lost if it is killed.
	noteEvery = 500 * time.Millisecond
	// Events about denials: of a replica, and of one account. An account's burst is enough for a
	// whole denied application, and leaves capacity for others.
	notesPerSecond        = 2
	notesAtOnce           = 120
	accountNotesPerMinute = 20
	accountNotesAtOnce    = 30
	// Events about registries: of a replica. If a registry that everybody uses fails, 1,000 namespaces
	// get theirs within a minute.
	registriesPerSecond = 10
	registriesAtOnce    = 400
	// Events ImageNoLongerTrusted of one account. A rule may revoke everything at once; the
	// report contains those that Events omit.
	accountEventsPerMinute = 2
	accountEventsAtOnce    = 50

	// writesPerMinute and writesAtOnce bound the writes of all reports, accountWrites those of
	// one account.
	writesPerMinute        = 90
	writesAtOnce           = 10
	accountWritesPerMinute = 12
	accountWritesAtOnce    = 6
	// maxLimiters is the number of accounts with their own limiter for writes or Events.
	maxLimiters = 10_000
	// soon is how long a report waits for more changes before it is written, later the longer
	// wait if only counts changed.
	soon  = 2 * time.Second
	later = 15 * time.Second
	// tick is how often the leader checks for due reports, lookAgain how often it checks all of
	// them: rows expire.
	tick      = 500 * time.Millisecond
	lookAgain = time.Minute
	// retryAfter is the pause after a failed write, and after a check for the CRD of reports.
	// complainEvery is how often the same failure is logged.
	retryAfter    = 10 * time.Second
	complainEvery = 10 * time.Minute
	// unreadFor is how long reading all pods and workloads may take before it is logged.
	unreadFor = time.Minute
	// withheldFor is how long a report with a revocation waits for the Event.
	withheldFor = time.Minute
	// requestTimeout bounds one request to the API server.
	requestTimeout = 10 * time.Second
	// pageSize is the number of reports per request: each may have 1.5 MiB.
	pageSize = 10
	// clientQPS and clientBurst only keep a bug from flooding the API server; the limits above
	// apply much earlier.
	clientQPS   = 50
	clientBurst = 100

	// factsInterval is how often the process checks its facts; it only writes changes.
	// factsTimeout bounds one check of everything.
	factsInterval = 10 * time.Second
	factsTimeout  = 15 * time.Second
	// maxFacts bounds the results of the report with facts, maxFactBytes one of their texts; an
	// object may have 1.5 MiB.
	maxFacts     = 200
	maxFactBytes = 400
	// maxClockSkew is far above normal clock differences, and below every margin before an
	// expiry.
	maxClockSkew = 5 * time.Second
)
