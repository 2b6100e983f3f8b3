package revocation

import "time"

const (
	// maxResponses and maxBytes bound what is kept for one namespace: a team's own
	// authority chooses how many addresses its certificates name.
	maxResponses = 64
	maxBytes     = 16 << 20
	// maxBytesTotal bounds all namespaces together. Past it, the largest share loses
	// what was used least recently.
	maxBytesTotal = 128 << 20
	// maxResponse is the size of one OCSP response or revocation list in bytes. The
	// lists of large public authorities stay below 10 MiB.
	maxResponse = 12 << 20
	// maxRequest bounds an OCSP request, which names one certificate.
	maxRequest = 8 << 10
	// maxAddress bounds an address in a certificate.
	maxAddress = 2 << 10
	// maxFetches run at a time for all accounts, and maxFetchesEach for one, so that the
	// slow responders of one account do not hold up the others. Each may hold a list of
	// maxResponse in memory, and as much again while it grows.
	maxFetches     = 8
	maxFetchesEach = 2
	// maxPending is how many responses one namespace may be waiting for.
	maxPending = 16
	// fetchTimeout bounds one fetch.
	fetchTimeout = 10 * time.Second
	// defaultRefresh is how old a response may become before it is fetched again.
	// Revocation is noticed that much later, plus the time that verdicts are cached.
	defaultRefresh = 10 * time.Minute
	// forgetAfter is how long a response is refreshed without being used.
	forgetAfter = 24 * time.Hour
	// firstRetry and lastRetry are the pauses after failed fetches, doubled each time.
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)
