package provider

import (
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Limits of requests and answers. The client is Gatekeeper, but users wrote the
// image in every key.
const (
	// maxBodyBytes bounds a request; 512 keys of an ordinary length are 50 KiB.
	maxBodyBytes = 1 << 20
	// maxKeys bounds the keys of a request, including repetitions. One account may have as
	// many in flight by default, so a longer request could never be answered.
	maxKeys = defaultMaxKeys / 2
	// maxImages bounds the distinct images of a request plus its malformed keys. A pod has few
	// images.
	maxImages = 512
	// maxKeyBytes bounds one key; a tag and a reference are at most about 1.1 KiB.
	maxKeyBytes = 4 << 10
	// maxAnswerBytes bounds an answer: Gatekeeper reads it whole, without its own limit.
	maxAnswerBytes = 8 << 20
	// maxSystemErrorBytes bounds a system error, which users see as the message of a
	// denial.
	maxSystemErrorBytes = 8 << 10
	// maxReasonBytes bounds the text about one policy that denies the image of a key, and the log
	// line about the key. maxShownKeyBytes bounds the key in them.
	maxReasonBytes = 512
	// maxReasonsBytes bounds the sum of the reasons in one answer, but each may have
	// minReasonBytes: 50 images that one policy denies take about 16 KiB of text.
	maxReasonsBytes  = 8 << 10
	minReasonBytes   = 128
	maxShownKeyBytes = 256
	// maxReports bounds the reports about one image, and maxAnswerReports those of an answer, but
	// each image may have minReports. A verdict may rest on thousands of findings, and every
	// known answer encodes them again.
	maxReports       = 64
	maxAnswerReports = 256
	minReports       = 8
	// valueBytes and reportBytes are the sizes of a verdict and a report in an answer, without
	// the message and the fix.
	valueBytes  = 768
	reportBytes = 448
	// maxConnectionAge is the age of a connection that ends with its next answer. Gatekeeper only shows its certificate
	// when it connects, and keeps busy connections open: after this time it shows its current certificate, and not one
	// of a CA whose overlap of ten minutes ends, for which a request would be refused.
	maxConnectionAge = 5 * time.Minute
	// maxStackBytes bounds the stack that is logged for a panic.
	maxStackBytes = 8 << 10
	// maxLoggedKeys bounds the log lines about keys per request.
	maxLoggedKeys = 64
	// auditWindow and admissionWindow are how long the same line is not logged again. Audits run
	// every minute and find known objects. A person may look for the traceID of a denial: a
	// ReplicaSet retries its pods at growing intervals.
	auditWindow     = time.Hour
	admissionWindow = 10 * time.Second
	// maxRepeats bounds the lines of either that are remembered, of 400 bytes each. Beyond it,
	// accounts share them evenly.
	maxRepeats = 16384
	// denialWindow is how long the same denial has the traceID of the first one: as long as
	// Kubernetes keeps an Event, and no longer than logs are kept.
	denialWindow = time.Hour
	// maxDenials bounds the denials whose first traceID is remembered, of 300 bytes each.
	maxDenials = 8192
	// crowdedInterval is how often an account with more lines than its share logs one.
	crowdedInterval = 10 * time.Second

	// maxParallelKeys bounds the images of one request that are in flight. It is at most what
	// every namespace may have in flight; otherwise a single request would be an overload.
	maxParallelKeys = verify.MinInFlight
	// maxParsed bounds the cache of parsed references, of at most 1 KiB each.
	maxParsed = 8192
	// recallFor bounds the time in which a request recalls known verdicts. Workers decide about
	// the remaining targets.
	recallFor = 50 * time.Millisecond

	// maxNamespaceLabels bounds the namespaces in metrics. Further ones count as "other".
	maxNamespaceLabels = 1000
	// maxQuotaLabels bounds the ClusterQuotas in metrics, of 17 series each: as many as a dashboard
	// can compare. Further ones count as "other".
	maxQuotaLabels = 20

	// maxHeaderBytes bounds the header of a request; Gatekeeper's is 200 bytes.
	maxHeaderBytes = 16 << 10
	// readHeaderTimeout bounds the TLS handshake and the header of a request.
	readHeaderTimeout = 5 * time.Second
	// idleTimeout is above the 90 s for which Gatekeeper keeps idle connections. The
	// client must close first: a POST on a closed connection is not repeated.
	idleTimeout = 120 * time.Second
	// writeAllowance is the time for writing an answer after its deadline.
	writeAllowance = 5 * time.Second
	// maxScrapes bounds the concurrent scrapes: in some clusters every pod may scrape.
	maxScrapes = 4
	// probeTimeout bounds reading and answering a probe or a scrape.
	probeTimeout = 10 * time.Second
	// noticesPerSecond and noticeBurst bound the log lines that peers without a client
	// certificate can cause.
	noticesPerSecond = 1
	noticeBurst      = 10
)

// Defaults and bounds of [Options].
const (
	DefaultVerifyTimeout = 2500 * time.Millisecond
	DefaultMutateTimeout = 800 * time.Millisecond
	defaultMaxKeys       = 4096
	DefaultGracePeriod   = 10 * time.Second

	// minTimeout leaves room for the margin.
	minTimeout = 50 * time.Millisecond
	// maxTimeout is the longest timeout of an admission webhook in Kubernetes.
	maxTimeout = 30 * time.Second
	// marginParts makes the margin timeout/marginParts. Work is told to end one margin before
	// the deadline; half a margin before it, the answer no longer waits.
	marginParts = 10
)
