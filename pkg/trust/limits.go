package trust

const (
	// maxKeysInput bounds a source of keys in bytes: 16 RSA keys of 8192 bits
	// need a third of it.
	maxKeysInput = 64 << 10
	// maxCertificatesInput bounds a source of certificates in bytes: 4 KiB for
	// each of the most that are allowed.
	maxCertificatesInput = maxCertificates * 4 << 10
	// maxKeys bounds the keys of one source: every signature is tried with each
	// of them, on the request path.
	maxKeys = 16
	// maxCertificates bounds the certificates of one source: chain building
	// looks at each of them. A bundle of all public authorities has about 150.
	maxCertificates = 256
	// minRSABits is the weakest RSA key that NIST SP 800-131A still accepts.
	minRSABits = 2048
	// maxRSABits bounds the time of one verification, which grows with the
	// square of the key's length.
	maxRSABits = 8192
)
