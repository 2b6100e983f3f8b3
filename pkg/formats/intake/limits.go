package intake

// Limits on evidence. Each is several times what real signing tools write.
const (
	// maxDepth is the nesting depth of JSON and CBOR. A bundle nests eight deep.
	maxDepth = 16
	// maxMembers is the number of names of one JSON object. Annotations are the largest.
	maxMembers = 128
	// maxBundleValues is the number of JSON values of a bundle. Its bulk is in a few long
	// strings: four log entries with their proofs have about 400 values.
	maxBundleValues = 1024
	// maxManifestValues is the number of JSON values of a manifest or index: maxLayers with four
	// values and five annotations each.
	maxManifestValues = 10 << 10
	// minListValue is the average number of bytes of a JSON value in a list of descriptors: the
	// shortest descriptor has 40 for each. spareListValues is the number that a short list may
	// have.
	minListValue, spareListValues = 16, 64
	// maxLayers is the number of layers of a manifest. cosign adds one for each signature, and
	// reads 1000.
	maxLayers = 1000
	// maxAnnotations and maxAnnotation bound the annotations of one descriptor: their number,
	// and the bytes of each. cosign's annotations hold certificate chains of about 5 KiB.
	maxAnnotations = 64
	maxAnnotation  = 64 << 10
	// maxPayloadValues is the number of JSON values of an image signature's payload: about
	// twenty, and its annotations.
	maxPayloadValues = 1024
	// maxEnvelopeValues is the number of JSON values of a notation envelope, its protected
	// header or its payload, and maxEnvelopeItems the number of CBOR items.
	maxEnvelopeValues, maxEnvelopeItems = 128, 128
	// maxPredicate is the number of bytes of memory that a statement may take for each of its
	// own bytes, and spare is what every statement may take in addition. A bill of materials
	// takes 4 to 8.
	maxPredicate, spare = 16, 64 << 10
	// maxStatementDepth is the nesting depth of a statement's JSON. The components of SBOMs nest.
	maxStatementDepth = 64

	// maxLogEntries and maxTimestamps are the numbers that a signature may have. Clients write
	// one of each; two logs and two authorities are possible.
	maxLogEntries, maxTimestamps = 4, 4
	// maxEntryBody is the size of a log entry in bytes: a hash, a signature and a certificate,
	// in Base64 twice, about 4 KiB. maxEntryBodies is the size of all entries: libraries take 45
	// times as much memory to read them.
	maxEntryBody, maxEntryBodies = 16 << 10, 24 << 10
	// maxEntryValues is the number of JSON values of a log entry; the largest kind has 20.
	maxEntryValues = 64
	// maxProofHashes is the number of hashes of an inclusion proof: a log of 2^63 entries needs
	// 63.
	maxProofHashes = 64
	// maxHash is the size of a hash, a log's name or a key hint in bytes.
	maxHash = 256
	// maxCheckpoint is the size of a checkpoint in bytes: 200, and 150 for each witness.
	maxCheckpoint = 8 << 10
	// maxPromise is the size of a signed entry timestamp in bytes: one signature.
	maxPromise = 2 << 10
	// maxTimestamp is the size of a timestamp in bytes. With its authority's chain it takes
	// 4 to 8 KiB. maxTimestampBytes is that of all timestamps.
	maxTimestamp, maxTimestampBytes = 16 << 10, 32 << 10

	// maxCertificates is the number of certificates in a signature or a timestamp.
	maxCertificates = 10
	// maxCertificate is the size of a certificate in bytes. Fulcio's take 1 KiB, those with
	// long policies 3 KiB.
	maxCertificate = 16 << 10
	// maxCertificateElements and maxTimestampElements bound their DER elements. Fulcio's
	// certificates have about 150.
	maxCertificateElements, maxTimestampElements = 512, 2048
	// maxDERDepth is the nesting depth of DER: names in a timestamp's attributes nest 19 deep.
	maxDERDepth = 24
	// maxDERCopies is the average nesting of each byte of DER: libraries that rewrite DER copy
	// it at each level.
	maxDERCopies = 16
	// maxKey is the size of a public key in PEM or DER, in bytes.
	maxKey = 4 << 10
	// maxRSABits is the size of an RSA key: verification time grows with its square.
	maxRSABits = 8192
	// maxRSAExponent bounds the public exponent, as crypto/rsa does: verification time
	// grows with its length.
	maxRSAExponent = 1<<31 - 1
)
