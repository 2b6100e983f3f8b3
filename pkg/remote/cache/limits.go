package cache

import "time"

// DefaultMemoryBytes is the size of a [Memory] cache for about 20,000 verdicts.
const DefaultMemoryBytes = 64 << 20

// defaultParts is how many accounts fill the memory, each with the default share.
const defaultParts = 8

// Limits on Redis, which may be slow, full, or written by others.
const (
	// redisBudget is the time that one request may spend on Redis, for one command.
	redisBudget = 50 * time.Millisecond
	// writeBudget bounds one write, for which no request waits. connectBudget bounds a read that
	// has to open its connection, and maxAsking how many may take longer than redisBudget.
	writeBudget   = time.Second
	connectBudget = 2 * time.Second
	maxAsking     = 16
	// maxValueBytes bounds a value, written or read. A verdict takes a few KiB.
	maxValueBytes = 256 << 10
	// maxEvidenceBytes bounds evidence that replicas share, by its weight in memory: it usually takes 2 to 10 KiB.
	// evidenceLifetime is how long it stays in Redis: as long as verdicts, after which a rotated key may be
	// removed.
	maxEvidenceBytes = 32 << 10
	evidenceLifetime = time.Hour
	// maxPending bounds the queues of reads and writes; further ones are dropped.
	maxPending = 1024
	writers    = 4
	// maxBatch is the number of values that share a round trip; readers is the number of round
	// trips in flight.
	maxBatch = 64
	readers  = 4
	// After breakAfter failures in a row, a server gets no commands for breakFor.
	breakAfter = 5
	breakFor   = 2 * time.Second
	// maxBreakers bounds the masters with a breaker: in a cluster whose servers are often
	// replaced, the number of addresses only grows.
	maxBreakers = 256
	// lookBudget bounds a check of Redis by [Redis.Look], and lookLifetime is how long its key
	// stays if it cannot be removed.
	lookBudget   = 3 * time.Second
	lookLifetime = 10 * time.Second
	// forgetBudget bounds the removal of a namespace's keys, forgetBatch one step of it.
	forgetBudget = time.Minute
	forgetBatch  = 500
	// maxAnswerBytes is longer than the errors of Redis.
	maxAnswerBytes = 200
	// showBatch is the number of values that Show has in memory at a time: anyone who can write
	// to Redis can make each as large as maxValueBytes.
	showBatch = 32
	// dialTimeout and ioTimeout apply to connections that no request waits for; otherwise,
	// redisBudget applies first.
	dialTimeout = 500 * time.Millisecond
	ioTimeout   = time.Second
)

// Limits on keys that seal values.
const (
	masterBytes = 32
	// maxMasters bounds the master keys: the current one, and its predecessors.
	maxMasters = 4
	// maxSealKeys bounds the derived keys in memory, and maxSeenUIDs the UIDs of each namespace.
	maxSealKeys = 10_000
	maxSeenUIDs = 64
)
