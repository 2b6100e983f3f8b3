package revocation

import "time"

const (
	// maxResponses and maxBytes bound the responses for one namespace: a team's own CA chooses
	// the addresses in its certificates.
	maxResponses = 64
	maxBytes     = 16 << 20
	// maxBytesTotal bounds all namespaces together. Beyond it, the largest share loses its least
	// recently used responses.
	maxBytesTotal = 128 << 20
	// maxResponse is the size of one OCSP response or revocation list in bytes. The
	// lists of large public authorities stay below 10 MiB.
	maxResponse = 12 << 20
	// maxRequest bounds an OCSP request, which names one certificate.
	maxRequest = 8 << 10
	// maxAddress bounds an address in a certificate.
	maxAddress = 2 << 10
	// maxFetches is the number of concurrent fetches of all accounts, and maxFetchesEach of one,
	// so that one account's slow responders do not delay the others. Each may hold a list of
	// maxResponse in memory, and as much again while it grows.
	maxFetches     = 8
	maxFetchesEach = 2
	// maxPending is the number of responses for which one namespace may wait.
	maxPending = 16
	// fetchTimeout bounds one fetch.
	fetchTimeout = 10 * time.Second
	// defaultRefresh is the age at which a response is fetched again. Revocations are noticed
	// that much later, plus the time that verdicts are cached.
	defaultRefresh = 10 * time.Minute
	// forgetAfter is how long an unused response is refreshed.
	forgetAfter = 24 * time.Hour
	// firstRetry and lastRetry are the pauses after failed fetches, doubled each time.
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)
