package tracing

import "time"

// Limits of traces. Clients choose how many images a request has, and strangers how
// much evidence there is.
const (
	// maxSpans bounds the spans of one request: the queue has space for eight such requests.
	// Most have fewer than ten.
	maxSpans = 256
	// maxTextBytes bounds a user's text in a span, and an error in the log.
	maxTextBytes = 512
	// defaultQueue is the queue of the SDK if OTEL_BSP_MAX_QUEUE_SIZE is not set, and maxQueue
	// the maximum: 64 MiB, at a kilobyte per span.
	defaultQueue = 2048
	maxQueue     = 65536
	// warningInterval bounds the log lines about a collector that is down.
	warningInterval = time.Minute
)
