package page

import "time"

const (
	// statusAge, checkAge and explainAge are how old facts get before somebody who looks has them read
	// again. A check reads four times as much as a status, and sees outages. A view says when it was.
	statusAge  = 15 * time.Second
	checkAge   = 30 * time.Second
	explainAge = 5 * time.Minute
	// slowly is how many times as long as it took to read facts they are fresh at least, so that an open
	// page is a small load for the API server.
	slowly = 10
	// readTime bounds one reading of a source.
	readTime = 2 * time.Minute
	// patience is how long a view waits for facts that were never read. Without them it says so, and
	// updates by itself.
	patience = 1500 * time.Millisecond
	// maxReadings bounds the readings at a time, and as many explanations. maxKept is how many single
	// namespaces and explanations are kept.
	maxReadings = 4
	maxKept     = 64
	// maxRequests bounds the requests at a time: a browser makes six.
	maxRequests = 16
	// maxPaste bounds the objects of a what-if, and maxForm the request that has them, which encodes
	// each byte as three.
	maxPaste = 256 << 10
	maxForm  = 3*maxPaste + 4096
	// maxQuery and maxImage bound texts of addresses.
	maxQuery = 200
	maxImage = 1024
	// maxText bounds a long text that a view can unfold, and shortText is what it shows folded.
	maxText   = 64 << 10
	shortText = 400
	// rowsOfPage is how many rows of a table one address shows.
	rowsOfPage = 100
	// maxBoxes is how many resources one cell of the picture of rules names.
	maxBoxes = 6
	// maxHits bounds what a search lists.
	maxHits = 100
	// maxFacts bounds what is said of one signer.
	maxFacts = 24
)
