package notation

import "github.com/landwaiter/landwaiter/pkg/trust"

// Limits on what one verifier and one signature may cost; past a limit a
// verifier does not construct and a signature does not count.
const (
	// maxEnvelope is the size of a signature envelope in bytes. A signature with
	// a chain of three certificates and a timestamp takes about 10 KiB.
	maxEnvelope = 1 << 20
	// maxChain is how many certificates a signature may present. The library
	// checks the signature of each one before it looks at whom to trust.
	maxChain = 10
	// maxTimestamp is the size of a timestamp in bytes: one with the chain of its
	// authority takes 4 to 8 KiB.
	maxTimestamp = 64 << 10
	// maxCertificates is how many trust anchors a verifier may have, as many as one
	// trust store: every presented certificate is compared with each of them.
	maxCertificates = trust.MaxCertificates
	// maxIdentities is how many trusted identities a verifier may have.
	maxIdentities = 64
	// maxIdentity is the length of one trusted identity in bytes; a
	// distinguished name of ten long attributes fits.
	maxIdentity = 1 << 10
	// maxNameShown is how much of a certificate's subject a message repeats.
	maxNameShown = 200
)
