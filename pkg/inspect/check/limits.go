package check

import "time"

// Limits on what is read and on what counts as normal.
const (
	// pageSize is the number of objects per list request; the API server keeps larger answers in
	// memory.
	pageSize = 500
	// maxObjects bounds the objects of one kind that are read. Beyond it, the check is omitted,
	// because some of the objects do not prove that all are fine.
	maxObjects = 20_000
	// maxText bounds a quoted text of somebody else.
	maxText = 400
	// maxFix bounds the fix in a condition, which contains the YAML to copy.
	maxFix = 2 << 10
	// maxNamed bounds the names in one sentence.
	maxNamed = 10
	// maxCacheTTL is the longest time that Gatekeeper may cache an answer: a changed policy
	// takes effect that much later.
	maxCacheTTL = 10 * time.Second
	// minServingThreads is the least number of requests that Gatekeeper should handle at once: those that wait
	// for a registry need no processor. servingThreadsToSet is the suggested number.
	minServingThreads   = 32
	servingThreadsToSet = 64
	// answerWithin is how long the server may take to answer, three renewals of its Lease:
	// Gatekeeper waits for 3 seconds. answerAgain is the pause after a refused request.
	answerWithin = 6 * time.Second
	answerAgain  = time.Second
	// requestsEach is the number of requests for each replica, and maxRequests the total: of two
	// replicas, one that hangs gets none of eight in one of 256 cases. maxReply bounds the part of an
	// answer that is read.
	requestsEach = 4
	maxRequests  = 16
	maxReply     = 4 << 10
	// leaseGrace is when an unrenewed lease has no holder: four terms of 15 seconds.
	leaseGrace = time.Minute
	// startGrace is how long an operator may take to become ready, and deletionGrace how long a
	// working one may take to delete a Tenant, before that is a finding.
	startGrace    = 2 * time.Minute
	deletionGrace = 10 * time.Minute
)

// Defaults of Gatekeeper's flags.
const (
	defaultCacheTTL      = 3 * time.Minute
	defaultAuditInterval = "60"
)

// Defaults that Kubernetes has for webhooks.
const defaultWebhookSeconds = 10

// Defaults of the flags of landwaiter-server serve.
const (
	defaultVerifyTimeout = 2500 * time.Millisecond
	defaultMutateTimeout = 800 * time.Millisecond
)
