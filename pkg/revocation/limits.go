package revocation

import "time"

const (
	// maxAnswers and maxBytes bound what is kept for one namespace: a team's own
	// authority chooses how many addresses its certificates name.
	maxAnswers = 64
	maxBytes   = 16 << 20
	// maxBytesInAll bounds all namespaces together; past it the largest share
	// loses what was used least recently.
	maxBytesInAll = 128 << 20
	// maxAnswer is the size of one OCSP response or revocation list in bytes. The
	// lists of large public authorities stay below 10 MiB.
	maxAnswer = 12 << 20
	// maxRequest bounds an OCSP request, which names one certificate.
	maxRequest = 8 << 10
	// maxAddress bounds an address in a certificate.
	maxAddress = 2 << 10
	// workers fetch at the same time, for all namespaces.
	workers = 16
	// maxQueued is how many fetches one namespace may have waiting.
	maxQueued = 16
	// fetchTimeout is for one fetch.
	fetchTimeout = 10 * time.Second
	// defaultRefresh is how old an answer may become before it is fetched again.
	// Revocation is noticed so much later, and verdicts are kept on top of it.
	defaultRefresh = 10 * time.Minute
	// forgetAfter is how long an answer is refreshed without being used.
	forgetAfter = 24 * time.Hour
	// tick is how often it is looked at what has become old.
	tick = 10 * time.Second
	// firstRetry and lastRetry are the waits after failed fetches, doubled each time.
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)
