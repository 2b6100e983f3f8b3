package check

import "time"

// Limits of what is read and of what counts as sound.
const (
	// pageSize is how many objects one list request asks for; the API server keeps larger
	// answers in memory.
	pageSize = 500
	// maxObjects bounds the objects of one kind that are read. A check over more is not done,
	// because half of the objects cannot show that all is well.
	maxObjects = 20_000
	// maxText bounds what is shown of a text that somebody else wrote.
	maxText = 400
	// maxFix bounds what a condition says to do, which has the YAML to copy.
	maxFix = 2 << 10
	// maxNamed bounds the names that one sentence lists.
	maxNamed = 10
	// maxCacheTTL is the longest time that Gatekeeper may keep an answer: as long a changed
	// policy does not count.
	maxCacheTTL = 10 * time.Second
	// answerWithin is how long the server may take to answer anything, three renewals of its Lease:
	// Gatekeeper waits for 3 seconds. answerAgain is the pause after a refused request.
	answerWithin = 6 * time.Second
	answerAgain  = time.Second
	// requestsEach is how many requests are sent for each replica, and maxRequests in all: of two
	// replicas, one that hangs gets none of eight in one of 256 times. maxReply bounds what is read of
	// an answer.
	requestsEach = 4
	maxRequests  = 16
	maxReply     = 4 << 10
	// leaseGrace is when an unrenewed lease has no holder: four terms of 15 seconds.
	leaseGrace = time.Minute
	// startGrace is how long an operator may take to become ready, and deletionGrace how long one that
	// works may take to delete a Tenant, before that is a finding.
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
