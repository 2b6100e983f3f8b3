package notation

import "time"

// Limits on the cost of one verifier and one signature. A verifier over a limit is
// refused, and a signature over a limit does not count.
const (
	// maxEnvelope is the size of a signature envelope in bytes. A signature with
	// a chain of three certificates and a timestamp takes about 10 KiB.
	maxEnvelope = 1 << 20
	// maxCertificates is the number of trust anchors of a verifier, as for one trust store:
	// every presented certificate is compared with each of them.
	maxCertificates = 256
	// maxIdentities is the number of trusted identities of a verifier.
	maxIdentities = 64
	// maxIdentity is the length of one trusted identity in bytes; a
	// distinguished name of ten long attributes fits.
	maxIdentity = 1 << 10
	// maxARN is the length of an ARN of AWS Signer in bytes: the longest has 140.
	maxARN = 256
	// maxDistributionPoints is the number of OCSP responders or revocation lists that one certificate may
	// name. Public CAs name one or two.
	maxDistributionPoints = 4
	// maxList is the size of a revocation list in bytes, and maxListsScanned the size of all lists that the
	// certificates of one chain name, counted as often as they name them. Scanning and hashing one MiB takes
	// about 5 ms.
	maxList         = 12 << 20
	maxListsScanned = 64 << 20
	// maxResponse is the size of an OCSP response in bytes; they have a few KiB.
	maxResponse = 1 << 20
	// entriesAtOnce is the number of list entries that are scanned in one step, some tens of
	// microseconds.
	entriesAtOnce = 1024
	// maxListRest is the size of a list without the entries of other certificates.
	maxListRest = 64 << 10
	// maxClockSkew is how far a signing authority's time may be in the future.
	maxClockSkew = time.Minute
	// maxNameShown is how much of a certificate's subject a message quotes.
	maxNameShown = 200
)
