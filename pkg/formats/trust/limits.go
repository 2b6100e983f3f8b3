package trust

import "time"

// Limits on one source of trust material, which tenants write. Parsing checks them, so
// that verification can rely on them.
const (
	// MaxKeys is the number of keys of one source. The request path tries every signature with
	// each of them.
	MaxKeys = 16
	// MaxCertificates is the number of certificates of one source. Chain building looks at each
	// of them. A bundle of all public authorities has about 150.
	MaxCertificates = 256
	// MinRSABits is the weakest RSA key that NIST SP 800-131A still accepts.
	MinRSABits = 2048
	// MaxRSABits bounds the time of one verification, which grows with the square of
	// the key's length.
	MaxRSABits = 8192

	// MaxLists is the number of revocation lists of one source. Each is tried with every issuer
	// of a chain.
	MaxLists = 16

	// maxKeysInput is the size of a source of keys in bytes. MaxKeys RSA keys of MaxRSABits need
	// a third of it.
	maxKeysInput = 64 << 10
	// maxCertificatesInput is the size of a source of certificates in bytes: 4 KiB
	// for each certificate.
	maxCertificatesInput = MaxCertificates * 4 << 10
	// maxRootInput is the size of a Sigstore root in bytes; the public-good one has
	// some 20 KiB.
	maxRootInput = 256 << 10
	// maxListsInput is the size of a source of revocation lists in bytes, the most that one key
	// of a Secret or ConfigMap can hold: about 4,000 revoked certificates.
	maxListsInput = 256 << 10
)

const (
	// Notice is how long before an expiry somebody should act.
	Notice = 30 * 24 * time.Hour
	// minListNotice is the shortest notice for a revocation list. Lists live for days or weeks,
	// so the notice is the last quarter of their lifetime.
	minListNotice = time.Hour
)
