package cosign

import "time"

// expressionHolds is how long an expression that reads the time stays true, if it also is at the end: as long as a
// denial is cached.
const expressionHolds = 10 * time.Second

// Limits on the cost of one signature. A signature over a limit does not count.
const (
	// maxPayload is the size of a simple-signing payload or of the statement of
	// an image signature, in bytes. cosign writes a few hundred, annotations
	// included.
	maxPayload = 64 << 10
	// bundleMemory is the memory that libraries take per byte of a bundle or an envelope, in addition to the
	// values of its statement: copies with and without Base64.
	bundleMemory = 3
	// maxTypeShown is how much of an unverified type a message quotes.
	maxTypeShown = 64
	// maxSignatureBundle is the size of a bundle with an image signature, in bytes: a few KiB, plus certificates, log
	// proofs and timestamps. Attestations share the media type.
	maxSignatureBundle = 4 << 20
	// maxEnvelopeSignatures is the number of signatures of a DSSE envelope.
	maxEnvelopeSignatures = 8
	// maxSignature is the length of a base64 signature annotation: an RSA key of
	// 8192 bits makes 1,368 characters.
	maxSignature = 4 << 10
	// maxDepth is how deep the JSON of a signed document may nest. cosign's own
	// documents nest four deep.
	maxDepth = 16
	// maxKeys is the number of keys of one verifier, as many as in four full trust stores: each
	// signature is tried with all of them.
	maxKeys = 64
	// maxSuspects is the number of keys that are tried with other hashes, for a better message.
	maxSuspects = 4
	// minRSABits is the weakest RSA key that NIST SP 800-131A still accepts.
	minRSABits = 2048
	// maxIdentities is the number of identities of one keyless verifier.
	maxIdentities = 16
	// maxIdentity is the length of a certificate's issuer or subject, in bytes. The workflow of a GitHub
	// repository takes about 200.
	maxIdentity = 2048
	// maxIdentitySteps bounds the regular expressions that one certificate is matched with, in
	// instructions times bytes: about 50 ms. Sixteen of the longest are possible for a subject
	// of 120 bytes.
	maxIdentitySteps = 4_000_000
	// maxAnnotation is the length of a legacy signature's certificate, log entry
	// or timestamp: a few KiB each.
	maxAnnotation = 64 << 10
	// maxQuote is how much of a library's error a message quotes, in bytes: the signer chooses
	// parts of it.
	maxQuote = 300
)
