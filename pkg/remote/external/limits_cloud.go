//go:build aws || azure || gcp

package external

import "time"

const (
	// maxSegment is one part of a name in a cloud's API.
	maxSegment = 256
	// maxServiceAccount is the size of a Google service account's key, which has 2.4 KiB.
	maxServiceAccount = 16 << 10
	// acrLifetime is how long a login of Azure Container Registry is valid, ecrLifetime one
	// of Elastic Container Registry, and googleLifetime an access token of Google.
	acrLifetime    = 3 * time.Hour
	ecrLifetime    = 12 * time.Hour
	googleLifetime = time.Hour
	// maxModulus is the length of the modulus of an RSA key of 8192 bits in base64, and
	// maxExponent that of an exponent of four bytes.
	maxModulus, maxExponent = 1366, 6
	// assertionLifetime is how long a request for a token may be used.
	assertionLifetime = 10 * time.Minute
)
