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
	// maxSources is how many sources one namespace may want; more are not fetched.
	maxSources = 32
	// maxFetches run at a time for all accounts, and maxFetchesEach for one, so that the
	// slow servers of one account do not hold up the others.
	maxFetches     = 64
	maxFetchesEach = 2
	// tellEvery is how far the time of the last fetch in a status may lag behind.
	tellEvery = time.Hour
	// publicGoodRefresh is how often Sigstore's own repository is asked, at most: it
	// is a public service, and it changes a few times a year.
	publicGoodRefresh = time.Hour
	// maxRolesText bounds the annotation of an exported ConfigMap: four roles take 300 bytes.
	maxRolesText = 4 << 10
	// loginMargin is how long before its end a login counts no more.
	loginMargin = time.Minute
	// maxPrivateKey is the size of an RSA key: 4096 bits take 2.4 KiB. A larger one would
	// cost seconds to parse and to sign with.
	maxPrivateKey = 4 << 10
	// maxSignatures is how many signatures of AWS Signer one account may ask about,
	// and maxSignaturesPending how many of them at a time.
	maxSignatures        = 2048
	maxSignaturesPending = 32
	// awsSignerRefresh is how old its answer may become before AWS Signer is asked again.
	// Revocation is noticed that much later, plus the time that verdicts are cached.
	awsSignerRefresh = 10 * time.Minute
	// awsSignerKeep is how long an answer counts while AWS Signer cannot be asked.
	awsSignerKeep = time.Hour
	// awsSignerIdle is how long an answer is refreshed without being used.
	awsSignerIdle = time.Hour
	// maxReply bounds one HTTP answer, before it is parsed.
	maxReply = 1 << 20
)
