package report

import "time"

const (
	// maxObjectBytes bounds the results of one report, so that the object stays far below
	// the 1.5 MiB of a request to etcd.
	maxObjectBytes = 512 << 10
	// runningBytes and deniedBytes bound the results of all namespaces of an account, which
	// share them evenly. minBytes is the least that a namespace gets.
	runningBytes = 2 << 20
	deniedBytes  = 256 << 10
	minBytes     = 16 << 10
	// maxResultBytes bounds one result: what is larger is left out alone. minResultBytes is
	// less than any result takes, to know early that no more fit.
	maxResultBytes = 32 << 10
	minResultBytes = 256
	// maxImages is how many images with a verdict are kept of one account: up to 4 KB each,
	// on every replica, and again by the leader.
	maxImages = 4096
	// maxLeftOut is how many rows that are left out are told apart, so that each is counted
	// once: 8 bytes each. More are not counted.
	maxLeftOut = 100_000
	// maxDenials is how many images a namespace's report on denials has: the ones that were
	// denied last.
	maxDenials = 200
	// maxResults is how many results of a report are read: none of ours has more.
	maxResults = 10_000
	// maxCounters bounds the counters of one denial. More are added up: replicas come and
	// go with every rollout.
	maxCounters = 48
	// maxWorkloads is how many workloads a denial is matched to.
	maxWorkloads = 10
	// maxCount bounds what one counter may say, so that a forged one does not overflow.
	maxCount = 1 << 40

	// keepDenials is how long a denial is reported after it was seen last.
	keepDenials = 7 * 24 * time.Hour
	// idleCounter is when a replica begins a new counter for an image, and endedCounter when
	// the leader adds an old one up: no replica goes on with it by then.
	idleCounter  = 30 * time.Minute
	endedCounter = 2 * time.Hour
	// maxAhead is how far the clock of another replica may be ahead.
	maxAhead = 5 * time.Minute

	// lookedEvery is how old the time at which an image was looked at may get in a report, which is written again for it.
	lookedEvery = 10 * time.Minute
	// undecidedFor is how long an image may be undecided before its last result gives way to
	// an error: nobody changed anything in a registry's outage of minutes.
	undecidedFor = 5 * time.Minute
	// undecidedNew is the same for an image that was never decided.
	undecidedNew = 30 * time.Second
	// goneFor is how long a container stays in the report after its last pod went: CronJobs
	// and restarted pods come back.
	goneFor = 2 * time.Minute

	// Bounds of texts that strangers chose, in bytes.
	maxImageBytes       = 1024 // as long as a reference may be
	maxReasonBytes      = 700
	maxRemediationBytes = 500
	maxCommandBytes     = 1000 // of all policies that deny
	maxContactBytes     = 512
	maxNameBytes        = 256
	maxSignersBytes     = 512
	// maxSigners is how many signers of an image are named.
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
	// maxRegistries. Further registries of a namespace are counted as one.
	maxPendingRegistries = 4096
	maxRegistriesEach    = 32
	maxRegistries        = 16
	// registryEvery is the pause between two writes about one registry, and keepRegistry how long
	// a report has it after its last image was refused: a ReplicaSet tries again after 17 minutes at
	// the latest.
	registryEvery = time.Minute
	keepRegistry  = time.Hour
	// noteEvery is how often counters are looked at. The first denial of an image is written
	// at once; what a replica has counted since is lost if it is killed.
	noteEvery = 500 * time.Millisecond
	// Events about denials: of a replica, and of one account. A whole application that is
	// denied at once fits into what an account may have at once, and leaves room for others.
	notesPerSecond        = 2
	notesAtOnce           = 120
	accountNotesPerMinute = 20
	accountNotesAtOnce    = 30
	// Events about registries: of a replica. If a registry that everybody uses fails, 1,000 namespaces
	// have theirs within a minute.
	registriesPerSecond = 10
	registriesAtOnce    = 400
	// Events ImageNoLongerTrusted of one account. A rule may revoke everything at once; the
	// report has what Events leave out.
	accountEventsPerMinute = 2
	accountEventsAtOnce    = 50

	// writesPerMinute and writesAtOnce bound the reports written in all, accountWrites those
	// of one account.
	writesPerMinute        = 90
	writesAtOnce           = 10
	accountWritesPerMinute = 12
	accountWritesAtOnce    = 6
	// maxLimiters is how many accounts have their writes or Events counted at a time.
	maxLimiters = 10_000
	// soon is how long a report waits for more changes to be written with, later the same if
	// only counts changed.
	soon  = 2 * time.Second
	later = 15 * time.Second
	// tick is how often the leader looks for reports that are due, lookAgain how often it
	// looks at all of them: time alone ends rows.
	tick      = 500 * time.Millisecond
	lookAgain = time.Minute
	// retryAfter is the pause after a failed write, and after a look for the CRD of
	// reports. complainEvery is how often the same failure is logged.
	retryAfter    = 10 * time.Second
	complainEvery = 10 * time.Minute
	// unreadFor is how long reading all pods and workloads may take before it is said.
	unreadFor = time.Minute
	// withheldFor is how long a report waits for the Event of a revocation that it says.
	withheldFor = time.Minute
	// requestTimeout bounds one request to the API server.
	requestTimeout = 10 * time.Second
	// pageSize is how many reports are read at a time: each may have 1.5 MiB.
	pageSize = 10
	// clientQPS and clientBurst only keep a bug from flooding the API server; the limits
	// above hold much earlier.
	clientQPS   = 50
	clientBurst = 100

	// factsInterval is how often the process looks at what only it knows; it writes on change
	// only. factsTimeout bounds one look at everything.
	factsInterval = 10 * time.Second
	factsTimeout  = 15 * time.Second
	// maxFacts bounds the results of the report on that, maxFactBytes one of their texts; an
	// object may have 1.5 MiB.
	maxFacts     = 200
	maxFactBytes = 400
	// maxClockSkew is well above what time services allow, and below what ends anything early.
	maxClockSkew = 5 * time.Second
)
