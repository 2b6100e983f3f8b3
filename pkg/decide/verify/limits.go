package verify

import "time"

// Limits on what one image may cost. An attacker who can push to a repository
// chooses how much evidence it has; past a limit the evidence does not count.
const (
	// MaxReferrers is how many manifests that refer to an image are read.
	MaxReferrers = 64
	// MaxSignatures is how many signatures of an image are checked, over all
	// manifests: checks cost processor time.
	MaxSignatures = 32
	// maxCheckTime is how long the signatures of an image are checked, in turns. Without it, costly
	// evidence would leave images undecided, which nothing caches, and each retry would pay again. A bill of materials of
	// 8 MiB takes half a second on an idle machine, ten times that on one whose memory is short.
	maxCheckTime = 6 * time.Second
	// MaxManifestBytes is the largest manifest that is read. The OCI distribution
	// specification asks registries to accept 4 MiB; signature manifests take a few
	// KiB.
	MaxManifestBytes = 1 << 20
	// MaxIndexManifests is how many manifests an index may have where a policy lets them
	// stand for it; manifestsAtOnce are examined concurrently. An image for ten platforms
	// with attestations of the build tool has 20.
	MaxIndexManifests = 32
	manifestsAtOnce   = 4
	// imagePart is which part of the memory for evidence the blobs of one image may take: many pieces, each within
	// its own limit, must not add up. Evidence usually takes some 10 KiB, a large SBOM some MiB. minImageBytes is what
	// an image gets of however little memory, and smallBytes what it gets in addition for pieces of at most smallBlob, such
	// as signatures: large attestations must not crowd them out.
	imagePart     = 9
	minImageBytes = 1 << 20
	smallBytes    = 1 << 20
	smallBlob     = 64 << 10
	// largeCheck is how much memory a check may take beside others, in bytes. One that takes more waits for its turn:
	// then it has memory of its own, as many ninths of the memory for evidence as reserveNinths, whatever others hold.
	largeCheck    = 1 << 20
	reserveNinths = 5
	// maxKept and maxKeptPieces bound the content that is kept of the evidence about one image, in bytes and in
	// manifests and blobs, and keptFor how long.
	maxKept       = 1 << 20
	maxKeptPieces = 2 * (MaxReferrers + MaxSignatures)
	keptFor       = 24 * time.Hour
	// manifestBytes is how much memory a byte of a manifest takes once it is parsed, and
	// findingBytes how much a finding takes, both roughly.
	manifestBytes = 4
	findingBytes  = 1024
	// maxLocationsNamed and maxLocationName bound what a reason says of the locations where evidence
	// was looked for: how many, and how much of the name of each.
	maxLocationsNamed = 6
	maxLocationName   = 120
	// maxMediaType is the longest media type (RFC 6838, section 4.2): type, slash and
	// subtype.
	maxMediaType = 127 + 1 + 127
)

// MinInFlight is the lowest limit on images in flight that an account can have: a
// single request may hold that many, and must not be overloaded by itself.
const MinInFlight = 32

// warnGrace is how long policies that only warn may look for evidence once the
// others have theirs: a warning must not cost an answer.
const warnGrace = 500 * time.Millisecond

// patience is how long one location may take over content, or the size of an image, before the answer of another one does.
const patience = 250 * time.Millisecond

// laterAtOnce is how many images that break-glass has let in are verified at a time, after
// the answer. In an outage each takes its whole time for nothing.
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

// standstill is how late after its end a context may be noticed by a process that runs. A server that
// was stopped, or whose machine was, notices seconds later.
const standstill = time.Second
