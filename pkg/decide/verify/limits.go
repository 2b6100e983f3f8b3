package verify

import "time"

// Limits on the cost of one image. An attacker who can push to a repository chooses how much
// evidence it has; evidence beyond a limit does not count.
const (
	// MaxReferrers is the number of manifests that refer to an image.
	MaxReferrers = 64
	// MaxSignatures is the number of signatures of an image, over all manifests: checks cost
	// processor time.
	MaxSignatures = 32
	// maxCheckTime bounds the time for checking the signatures of an image, in turns. Without it, costly evidence would
	// leave images undecided, which is never cached, and each retry would pay again. A bill of materials of 8 MiB takes
	// half a second on an idle machine, and ten times as long if memory is short.
	maxCheckTime = 6 * time.Second
	// MaxManifestBytes is the largest manifest that is read. The OCI distribution
	// specification asks registries to accept 4 MiB; signature manifests take a few
	// KiB.
	MaxManifestBytes = 1 << 20
	// MaxIndexManifests is the number of manifests of an index if a policy accepts them in place
	// of the index; manifestsAtOnce are examined concurrently. An image for ten platforms with
	// attestations of the build tool has 20.
	MaxIndexManifests = 32
	manifestsAtOnce   = 4
	// imagePart is the divisor of the evidence memory for the blobs of one image: many pieces, each within its own
	// limit, must not add up. Evidence usually takes about 10 KiB, a large SBOM several MiB. minImageBytes is the
	// minimum for an image, and smallBytes an addition for pieces of at most smallBlob, such as signatures: large
	// attestations must not crowd them out.
	imagePart     = 9
	minImageBytes = 1 << 20
	smallBytes    = 1 << 20
	smallBlob     = 64 << 10
	// largeCheck is the memory of a check that may run in parallel with others, in bytes. A larger check waits for its
	// turn: then it has its own memory, reserveNinths ninths of the evidence memory, regardless of the others.
	largeCheck    = 1 << 20
	reserveNinths = 5
	// maxKept and maxKeptPieces bound the kept evidence about one image, in bytes and in manifests and blobs.
	// keptFor is how long it is kept.
	maxKept       = 1 << 20
	maxKeptPieces = 2 * (MaxReferrers + MaxSignatures)
	keptFor       = 24 * time.Hour
	// manifestBytes is the approximate memory of a parsed manifest per byte, and findingBytes
	// that of a finding.
	manifestBytes = 4
	findingBytes  = 1024
	// maxLocationsNamed and maxLocationName bound the locations that a reason names: their number,
	// and the length of each name.
	maxLocationsNamed = 6
	maxLocationName   = 120
	// maxMediaType is the longest media type (RFC 6838, section 4.2): type, slash and
	// subtype.
	maxMediaType = 127 + 1 + 127
)

// MinInFlight is the lowest limit on images in flight of an account: a single request may
// contain that many, and must not overload the account by itself.
const MinInFlight = 32

// warnGrace is how long policies that only warn may search for evidence after the others have
// theirs: a warning must not cost an answer.
const warnGrace = 500 * time.Millisecond

// patience is how long one location may take to return content, or the size of an image, before another one may
// answer.
const patience = 250 * time.Millisecond

// laterAtOnce is the number of images that are verified concurrently after break-glass let
// them in. In an outage each takes its whole time for nothing.
const laterAtOnce = 16

// Defaults of [Options].
const (
	defaultWorkTimeout        = 10 * time.Second
	DefaultInFlight           = 512
	DefaultInFlightPerAccount = 128
	DefaultEvidenceBytes      = 144 << 20
	DefaultPassTTL            = time.Hour
	DefaultDenyTTL            = 10 * time.Second
	DefaultTagTTL             = 5 * time.Second
)

// standstill is the longest delay with which a running process notices the end of a context. A
// suspended server or machine notices seconds later.
const standstill = time.Second
