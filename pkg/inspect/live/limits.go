package live

import "time"

const (
	// clientQPS and clientBurst let a preview of a large cluster read its Secrets one by one
	// without being slowed down; API Priority and Fairness protects the server.
	clientQPS   = 100
	clientBurst = 200
	// pageSize is how many objects one answer of the API server has.
	pageSize = 500
	// maxObjects bounds the objects of one kind that are read: a person's machine has less
	// memory than a cluster, and the largest clusters have 150,000 pods.
	maxObjects = 200_000
	// maxReferences bounds the Secrets, ConfigMaps and ServiceAccounts that are read for one
	// namespace, as in the cluster.
	maxReferences = 64
	// maxUses bounds the images that are verified: each costs requests to registries.
	maxUses = 50_000
	// MaxOwners bounds the workloads that are named for one image: some base images are
	// everywhere.
	MaxOwners = 10
	// maxLists bounds the lists that are read at a time, besides that of reports.
	maxLists = 4
	// firstReports is how many reports the first page has, and at least each other one: a report may
	// have as much as etcd stores, 1.5 MiB. reportPageBytes is how much a further page should have, by
	// the size of the reports of the last one, and mostReports is how many.
	firstReports    = 20
	mostReports     = 100
	reportPageBytes = 8 << 20
	// maxReportBytes bounds one report, as JSON, besides what was buffered with the one before.
	maxReportBytes = 4 << 20
	// maxReports is how many reports of a namespace are looked at, and maxAllReports of all:
	// Landwaiter has at most 11 in a namespace, but others may give theirs its label.
	maxReports    = 200
	maxAllReports = 50_000
	// maxResults is how many results of one report are read: none of ours has more.
	maxResults = 10_000
	// denialsKept is how long reports say what was denied.
	denialsKept = 7 * 24 * time.Hour
	// undecidedKept is how long reports say that images of a registry were undecided, and
	// undecidedQuiet how long none may be before that is taken to be over: a ReplicaSet tries again
	// after 17 minutes at the latest.
	undecidedKept  = time.Hour
	undecidedQuiet = 20 * time.Minute
	// staleReport is how old a report is before a status says so, if Landwaiter may not answer.
	staleReport = 2 * time.Minute
	// maxShownBytes bounds a text of a report that is repeated.
	maxShownBytes = 1024
	// maxNamed is how many namespaces a note names.
	maxNamed = 10
	// maxLosses is how many rules that images lose are named, and maxLostImages how many images of each.
	maxLosses     = 20
	maxLostImages = 3
	// maxNear is how many near names of images a note about a policy has, and maxEdits how many letters of a name may be
	// wrong: enough for two that are swapped.
	maxNear  = 3
	maxEdits = 2
	// maxParallel bounds the images that are judged at a time, as for other commands: what a
	// registry bears from one machine.
	maxParallel = 16
)
