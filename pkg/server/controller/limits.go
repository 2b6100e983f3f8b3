package controller

import "time"

const (
	// maxReferences is the maximum number of Secrets and ConfigMaps that the resources
	// of one namespace may reference. Each needs a watch at the API server.
	maxReferences = 64

	// maxEntries is how many keys, or pull secrets, an object may have that is kept. Each takes
	// entryBytes besides its text.
	maxEntries = 1024
	entryBytes = 96
	// firstReads is the number of concurrent first reads of objects, and firstReadsOfOne the
	// number for one namespace.
	firstReads      = 8
	firstReadsOfOne = 2

	// firstRead is how long a namespace keeps its last configuration while a newly
	// referenced Secret or ConfigMap is read. After that, resources that need the object
	// deny. The first compilation waits longer: there is no configuration to keep.
	firstRead        = 2 * time.Second
	firstReadAtStart = 15 * time.Second

	// readingTurn bounds how long specs that the cache dropped are read each time that a
	// namespace is compiled: others wait as long. What is left is read after readAgain.
	readingTurn = 500 * time.Millisecond
	readAgain   = time.Second

	// maxAnnotation is the longest annotation that is kept, in bytes. Break-glass with a
	// longer one is not in force.
	maxAnnotation = 4 << 10

	// missingFor is how long a missing namespace is not looked up again. maxMissing
	// bounds the number of cached names: they come from requests.
	missingFor = time.Second
	maxMissing = 1000
	// lookUpTimeout bounds one request to the API server for a namespace.
	lookUpTimeout = 2 * time.Second

	// After a compilation, a namespace pauses for pausePerCompile times its duration, and at
	// least minPause: continuous edits take a tenth of the compiler.
	pausePerCompile = 9
	minPause        = 50 * time.Millisecond
	// maxPostponed is how long a namespace may wait for its references in total: its Secrets and
	// then external data, each firstRead. A new reference does not restart the wait.
	maxPostponed = 2 * firstRead
	// maxPaced bounds the namespaces whose last compilation is remembered.
	maxPaced = 10_000

	// retryPause is the pause before a failed duty or status write is retried; for
	// statuses it doubles up to maxRetryPause.
	retryPause    = 2 * time.Second
	maxRetryPause = time.Minute
	// statusWriters is the number of namespaces whose statuses are written concurrently, and
	// statusesAtOnce the number of statuses per turn. statusTimeout bounds one turn.
	statusWriters  = 4
	statusesAtOnce = 32
	statusTimeout  = 10 * time.Second
	// clusterPause is the shortest time between two checks of the cluster's statuses because of
	// changes in namespaces.
	clusterPause = time.Second
	// lookAgain is how often all statuses are compared with the time: ExpiresSoon is about days,
	// and a check only reads memory.
	lookAgain = time.Hour
	// maxRefused bounds the remembered statuses that the API server refused, and the namespaces
	// whose events are counted.
	maxRefused = 10_000
	// A namespace has eventBurst events at once, and then eventsPerSecond.
	eventsPerSecond = 1
	eventBurst      = 32
	// An image that break-glass lets in has one Event in tellAgain, and a namespace has them for
	// maxTold images.
	tellAgain = time.Hour
	maxTold   = 256
	// maxMessage is the longest note of an event that the API server accepts.
	maxMessage = 1024

	// tokenSeconds is how long the token of a ServiceAccount is valid: Kubernetes' minimum.
	tokenSeconds = 600
	// foreignFor is how long the API server is not asked again whether it would accept tokens
	// with an audience, and maxForeign the number of remembered audiences.
	foreignFor = time.Hour
	maxForeign = 1000
	// maxDenial is how much of a policy's message is quoted.
	maxDenial = 300

	// Timing of the leader's lease, as in Kubernetes' own components.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	leaseRetry    = 2 * time.Second

	// Rate limit for the API server. It is high because the start reads one object for
	// each reference of each namespace. API Priority and Fairness protects the server.
	clientQPS   = 200
	clientBurst = 400
)
