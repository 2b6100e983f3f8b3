//go:build aws || azure || gcp

package external

import "time"

const (
	// maxSegment is one part of a name in a cloud's API.
	maxSegment = 256
	// maxServiceAccount is the size of a Google service account's key, which has 2.4 KiB.
	maxServiceAccount = 16 << 10
	// maxPrivateKey is the size of its RSA key: 4096 bits take 2.4 KiB. A larger one would
	// cost seconds to parse and to sign with.
	maxPrivateKey = 4 << 10
	// maxModulus is the size of an RSA key of 8192 bits, in bytes.
	maxModulus = 1 << 10
	// assertionLifetime is how long a request for a token may be used.
	assertionLifetime = 10 * time.Minute
)
