package trust

// Limits on one source of trust material, which tenants write. Parsing checks them, so
// that verification can rely on them.
const (
	// MaxKeys is how many keys one source may have: every signature is tried with each
	// of them, on the request path.
	MaxKeys = 16
	// MaxCertificates is how many certificates one source may have: chain building
	// looks at each of them. A bundle of all public authorities has about 150.
	MaxCertificates = 256
	// MinRSABits is the weakest RSA key that NIST SP 800-131A still accepts.
	MinRSABits = 2048
	// MaxRSABits bounds the time of one verification, which grows with the square of
	// the key's length.
	MaxRSABits = 8192

	// maxKeysInput is the size of a source of keys in bytes: MaxKeys RSA keys of
	// MaxRSABits need a third of it.
	maxKeysInput = 64 << 10
	// maxCertificatesInput is the size of a source of certificates in bytes: 4 KiB
	// for each certificate.
	maxCertificatesInput = MaxCertificates * 4 << 10
	// maxRootInput is the size of a Sigstore root in bytes; the public-good one has
	// some 20 KiB.
	maxRootInput = 256 << 10
)
