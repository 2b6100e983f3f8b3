package page

import "time"

const (
	// statusAge, checkAge and explainAge are the ages at which a view reads facts again. A check reads
	// four times as much as a status, and detects outages. A view shows the time of its facts.
	statusAge  = 15 * time.Second
	checkAge   = 30 * time.Second
	explainAge = 5 * time.Minute
	// slowly is the shortest time for which facts are fresh, as a multiple of the time to read them, so
	// that an open page is a small load for the API server.
	slowly = 10
	// readTime bounds one reading of a source.
	readTime = 2 * time.Minute
	// patience is how long a view waits for facts that were never read. After that, it says so and
	// updates by itself.
	patience = 1500 * time.Millisecond
	// maxReadings bounds the concurrent readings, and the concurrent explanations. maxKept is the
	// number of single namespaces and explanations that are cached.
	maxReadings = 4
	maxKept     = 64
	// maxRequests bounds the concurrent requests: a browser sends six.
	maxRequests = 16
	// maxPaste bounds the objects of a what-if, and maxForm the request that contains them, which
	// encodes each byte as three.
	maxPaste = 256 << 10
	maxForm  = 3*maxPaste + 4096
	// maxQuery and maxImage bound texts in addresses.
	maxQuery = 200
	maxImage = 1024
	// maxText bounds a long text that a view can unfold, and shortText is its folded length.
	maxText   = 64 << 10
	shortText = 400
	// rowsOfPage is the number of table rows per address.
	rowsOfPage = 100
	// maxBoxes is the number of resources that one cell of the picture of rules names.
	maxBoxes = 6
	// maxHits bounds the results of a search.
	maxHits = 100
	// maxFacts bounds the facts about one signer.
	maxFacts = 24
)
