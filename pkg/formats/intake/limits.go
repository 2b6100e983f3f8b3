package intake

// Limits on evidence. Each is several times what real signing tools write.
const (
	// maxDepth is how deep JSON and CBOR may nest: a bundle nests eight deep.
	maxDepth = 16
	// maxMembers is how many names one JSON object may have. Annotations are the largest.
	maxMembers = 128
	// maxBundleValues is how many JSON values a bundle may have. Its bulk is in a few long
	// strings: four log entries with their proofs have about 400 values.
	maxBundleValues = 1024
	// maxManifestValues is how many JSON values a manifest or index may have: maxLayers with
	// four values and five annotations each.
	maxManifestValues = 10 << 10
	// minListValue is how many bytes a JSON value in a list of descriptors has on average:
	// the shortest descriptor has 40 for each. spareListValues is how many a short list
	// may have.
	minListValue, spareListValues = 16, 64
	// maxLayers is how many layers a manifest may have. cosign adds one each time that it
	// signs, and reads 1000.
	maxLayers = 1000
	// maxAnnotations and maxAnnotation bound the annotations of one descriptor: their
	// number, and the bytes of each. cosign's hold certificate chains, some 5 KiB.
	maxAnnotations = 64
	maxAnnotation  = 64 << 10
	// maxPayloadValues is how many JSON values the payload of an image signature may have:
	// some twenty, and its annotations.
	maxPayloadValues = 1024
	// maxEnvelopeValues is how many JSON values a notation envelope, its protected header or
	// its payload may have, and maxEnvelopeItems how many CBOR items.
	maxEnvelopeValues, maxEnvelopeItems = 128, 128
	// maxPredicate is how many bytes of memory a statement may take for each of its own,
	// and spare is how many more any may take. A bill of materials takes 4 to 8.
	maxPredicate, spare = 16, 64 << 10
	// maxStatementDepth is how deep the JSON of a statement may nest: the components of SBOMs do.
	maxStatementDepth = 64

	// maxLogEntries and maxTimestamps are how many a signature may have. Clients write
	// one of each; two logs and two authorities are possible.
	maxLogEntries, maxTimestamps = 4, 4
	// maxEntryBody is the size of a log entry in bytes: a hash, a signature and a
	// certificate, in Base64 twice, some 4 KiB. maxEntryBodies is that of all entries:
	// libraries take 45 times as much to read them.
	maxEntryBody, maxEntryBodies = 16 << 10, 24 << 10
	// maxEntryValues is how many JSON values a log entry may have; the largest kind has 20.
	maxEntryValues = 64
	// maxProofHashes is how many hashes an inclusion proof may have: a log of 2^63
	// entries needs 63.
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

	// maxCertificates is how many certificates a signature or a timestamp may bring.
	maxCertificates = 10
	// maxCertificate is the size of a certificate in bytes. Fulcio's take 1 KiB, those with
	// long policies 3 KiB.
	maxCertificate = 16 << 10
	// maxCertificateElements and maxTimestampElements are how many DER elements they may
	// have. Fulcio's certificates have about 150.
	maxCertificateElements, maxTimestampElements = 512, 2048
	// maxDERDepth is how deep DER may nest: names in a timestamp's attributes nest 19 deep.
	maxDERDepth = 24
	// maxDERCopies is how often, on average, each byte of DER may be nested: libraries
	// that rewrite DER copy it at each level.
	maxDERCopies = 16
	// maxKey is the size of a public key in PEM or DER, in bytes.
	maxKey = 4 << 10
	// maxRSABits is the size of an RSA key: verification time grows with its square.
	maxRSABits = 8192
	// maxRSAExponent bounds the public exponent, as crypto/rsa does: verification time
	// grows with its length.
	maxRSAExponent = 1<<31 - 1
)
