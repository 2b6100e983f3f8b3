package verify

import "time"

// Limits on what one image may cost. An attacker who can push to a repository
// chooses how much evidence it has; past a limit the evidence does not count.
const (
	// MaxReferrers is how many manifests that refer to an image are looked at.
	MaxReferrers = 64
	// MaxSignatures is how many signatures of an image are tried, over all
	// manifests: the checks are what costs processor time.
	MaxSignatures = 32
	// MaxManifestBytes is the size of a manifest that is read; the OCI
	// distribution specification asks registries to accept 4 MiB, signature
	// manifests are a few KiB.
	MaxManifestBytes = 1 << 20
	// MaxParts is how many manifests of an index are looked at, where a policy takes
	// them for the index; partsAtOnce of them at a time. Images for ten platforms
	// with attestations of the build tool have 20.
	MaxParts    = 32
	partsAtOnce = 4
	// MaxImageBytes is what is fetched in all for one image: it keeps many large
	// pieces of evidence, each within its own limit, from adding up. Usual evidence
	// is some 10 KiB; many images may be verified at a time.
	MaxImageBytes = 8 << 20
)

// MinInFlight is the least number of images in work that a namespace can be given:
// one request has so many, and must not be overload by itself.
const MinInFlight = 32

// Defaults of [Options].
const (
	defaultWorkTimeout          = 10 * time.Second
	DefaultInFlight             = 512
	DefaultInFlightPerNamespace = 128
	DefaultPassTTL              = time.Hour
	DefaultDenyTTL              = 10 * time.Second
	DefaultTagTTL               = 5 * time.Second
)
