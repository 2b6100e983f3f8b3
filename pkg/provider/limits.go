package provider

import (
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Limits on what a request may cost and on what is answered to it. The client is
// Gatekeeper, but every key holds a string that some user wrote.
const (
	// maxBodyBytes bounds a request; 512 keys of an ordinary length are 50 KiB.
	maxBodyBytes = 1 << 20
	// maxKeys bounds the keys of a request, repeated ones counted each time: the
	// bound is for the work before keys are compared. A pod has a few images.
	maxKeys = 512
	// maxKeyBytes bounds one key; a tag and a reference are at most about 1.1 KiB.
	maxKeyBytes = 4 << 10
	// maxAnswerBytes bounds an answer, because Gatekeeper reads it whole and
	// without a limit of its own.
	maxAnswerBytes = 8 << 20
	// maxSystemErrorBytes bounds the text that ends in an admission message.
	maxSystemErrorBytes = 8 << 10
	// maxReasonBytes and maxShownKeyBytes bound one key's part of such a text, and
	// of a log line.
	maxReasonBytes = 512
	// maxReasonsBytes bounds the reasons of one answer together, and minReasonBytes
	// is what each has even so: 50 denied images are some 16 KiB of text.
	maxReasonsBytes  = 8 << 10
	minReasonBytes   = 128
	maxShownKeyBytes = 256
	// maxStackBytes bounds the stack that is logged for a panic.
	maxStackBytes = 8 << 10
	// maxLoggedKeys bounds the lines about single keys that one request logs.
	maxLoggedKeys = 64

	// maxParallelKeys is how many images of one request are worked on at a time: no
	// more than every namespace has places for, or a request would be overload by
	// itself.
	maxParallelKeys = verify.MinInFlight
	// maxParsed bounds the references that are remembered, of 1 KiB at most each.
	maxParsed = 8192
	// recallFor bounds the time for what is known already; the rest is worked on
	// beside the request, as what is not known.
	recallFor = 50 * time.Millisecond
	// maxWorkers bounds the goroutines of all requests that verify or resolve,
	// those included that go on after their request was answered.
	maxWorkers = 2048

	// maxNamespaceLabels and maxStageLabels bound what metrics remember; further
	// values are counted as "other".
	maxNamespaceLabels = 1000
	maxStageLabels     = 32

	// maxHeaderBytes bounds the header of a request; Gatekeeper's is 200 bytes.
	maxHeaderBytes = 16 << 10
	// readHeaderTimeout bounds the TLS handshake and the header of a request.
	readHeaderTimeout = 5 * time.Second
	// idleTimeout is above the 90 s that Gatekeeper keeps idle connections: the
	// side that closes first must be the client, or a POST meets a closed
	// connection and is not repeated.
	idleTimeout = 120 * time.Second
	// writeAllowance is the time to write an answer after its deadline.
	writeAllowance = 5 * time.Second
	// probeTimeout bounds reading a probe or a scrape, and writing its answer.
	probeTimeout = 10 * time.Second
	// noticesPerSecond bounds the log lines that peers without a client
	// certificate can cause, noticeBurst how many come at once.
	noticesPerSecond = 1
	noticeBurst      = 10
)

// Defaults of [Options], and what they may be at most.
const (
	defaultVerifyTimeout = 2500 * time.Millisecond
	defaultMutateTimeout = 800 * time.Millisecond
	defaultMaxInFlight   = 256
	defaultGracePeriod   = 10 * time.Second

	// minTimeout leaves room for the margin in which the answer is written.
	minTimeout = 50 * time.Millisecond
	// maxTimeout is the longest that Kubernetes waits for an admission webhook.
	maxTimeout = 30 * time.Second
	// marginParts is the share of a timeout (one in so many) that is kept back:
	// verifiers are told to end one margin before the deadline, and what has not
	// answered half a margin before it is not waited for.
	marginParts = 10
)
