package external

import "time"

const (
	// defaultRefresh is how often a source is fetched.
	defaultRefresh = 5 * time.Minute
	// defaultKeep is how long the last good value counts while fetching fails.
	defaultKeep = 24 * time.Hour
	// fetchTimeout bounds one fetch, which may be several requests.
	fetchTimeout = 20 * time.Second
	// firstWait is how long compiling waits for the first fetch of a source.
	firstWait = 2 * time.Second
	// firstRetry and lastRetry are the pauses after failed fetches, doubled each time.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// maxContent is the size of fetched content in bytes, the same as for Secrets.
	maxContent = 256 << 10
	// maxSources is the number of sources of one namespace; further ones are not fetched.
	maxSources = 32
	// maxFetches is the number of concurrent fetches of all accounts, and maxFetchesEach of one,
	// so that one account's slow servers do not delay the others.
	maxFetches     = 64
	maxFetchesEach = 2
	// tellEvery is how far the time of the last fetch in a status may lag behind.
	tellEvery = time.Hour
	// publicGoodRefresh is the shortest interval between fetches from Sigstore's own repository:
	// it is a public service, and it changes a few times a year.
	publicGoodRefresh = time.Hour
	// maxRolesText bounds the annotation of an exported ConfigMap: four roles take 300 bytes.
	maxRolesText = 4 << 10
	// loginMargin is how long before its expiry a login is no longer used.
	loginMargin = time.Minute
	// maxPrivateKey is the size of an RSA key: 4096 bits take 2.4 KiB. A larger one would take
	// seconds to parse and to sign with.
	maxPrivateKey = 4 << 10
	// maxSignatures is the number of AWS Signer's signatures that one account may ask about, and
	// maxSignaturesPending the number at a time.
	maxSignatures        = 2048
	maxSignaturesPending = 32
	// awsSignerRefresh is the age at which AWS Signer is asked again. Revocations are noticed
	// that much later, plus the time that verdicts are cached.
	awsSignerRefresh = 10 * time.Minute
	// awsSignerKeep is how long an answer counts while AWS Signer cannot be asked.
	awsSignerKeep = time.Hour
	// awsSignerIdle is how long an unused answer is refreshed.
	awsSignerIdle = time.Hour
	// maxReply bounds one HTTP answer, before it is parsed.
	maxReply = 1 << 20
)
