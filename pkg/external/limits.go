package external

import "time"

const (
	// defaultRefresh is how often material is fetched again.
	defaultRefresh = 5 * time.Minute
	// defaultKeep is how long the last good material counts while it cannot be
	// fetched again.
	defaultKeep = 24 * time.Hour
	// fetchTimeout is for one fetch, which may be several requests.
	fetchTimeout = 20 * time.Second
	// firstWait is how long whoever needs material waits for its first fetch.
	firstWait = 2 * time.Second
	// firstRetry and lastRetry are the waits after failed fetches, doubled each time.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// maxContent is the size of fetched material in bytes, as of material in Secrets.
	maxContent = 256 << 10
	// maxSources is how much one namespace may have fetched; past it nothing is.
	maxSources = 32
	// maxFetches are under way at a time, for all namespaces, and
	// maxFetchesEach for one.
	maxFetches     = 64
	maxFetchesEach = 2
	// tellEvery is how old the time of the last fetch in a status may become.
	tellEvery = time.Hour
	// publicGoodRefresh is how often Sigstore's own repository is asked, at most: it
	// is a public service, and it changes a few times a year.
	publicGoodRefresh = time.Hour
	// maxReply bounds one HTTP answer, before it is parsed.
	maxReply = 1 << 20
)
