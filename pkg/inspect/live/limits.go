package live

import "time"

const (
	// clientQPS and clientBurst let a preview of a large cluster read its Secrets one by one
	// without being slowed down; API Priority and Fairness protects the server.
	clientQPS   = 100
	clientBurst = 200
	// pageSize is the number of objects of one answer of the API server.
	pageSize = 500
	// maxObjects bounds the objects of one kind that are read: a person's machine has less
	// memory than a cluster, and the largest clusters have 150,000 pods.
	maxObjects = 200_000
	// maxReferences bounds the Secrets, ConfigMaps and ServiceAccounts that are read for one
	// namespace, as in the cluster.
	maxReferences = 64
	// maxUses bounds the images that are verified: each costs requests to registries.
	maxUses = 50_000
	// MaxOwners bounds the workloads that are named for one image: some base images are used
	// everywhere.
	MaxOwners = 10
	// maxLists bounds the concurrent lists, in addition to the list of reports.
	maxLists = 4
	// firstReports is the number of reports of the first page, and the minimum of others: a report may
	// be as large as etcd allows, 1.5 MiB. reportPageBytes is the target size of a further page,
	// estimated by the last one, and mostReports its largest number of reports.
	firstReports    = 20
	mostReports     = 100
	reportPageBytes = 8 << 20
	// maxReportBytes bounds one report, as JSON, without data that was buffered with the
	// previous one.
	maxReportBytes = 4 << 20
	// maxReports is the number of reports that are read in a namespace, and maxAllReports in
	// all: Landwaiter has at most 11 in a namespace, but others may use its label.
	maxReports    = 200
	maxAllReports = 50_000
	// maxResults is the number of results that are read of one report: Landwaiter's have no
	// more.
	maxResults = 10_000
	// denialsKept is how long reports contain denials.
	denialsKept = 7 * 24 * time.Hour
	// undecidedKept is how long reports contain undecided images of a registry. After
	// undecidedQuiet without any, the outage counts as over: a ReplicaSet retries after 17 minutes
	// at the latest.
	undecidedKept  = time.Hour
	undecidedQuiet = 20 * time.Minute
	// staleReport is the age of a report at which a status warns that Landwaiter may not answer.
	staleReport = 2 * time.Minute
	// maxShownBytes bounds a quoted text of a report.
	maxShownBytes = 1024
	// maxNamed is the number of namespaces that a note names.
	maxNamed = 10
	// maxExempted is the number of entries of exemptImages that a line names.
	maxExempted = 3
	// maxLosses is the number of rules without images that are named, and maxLostImages the number of
	// images of each.
	maxLosses     = 20
	maxLostImages = 3
	// maxNear is the number of similar image names in a note about a policy, and maxEdits the number of wrong letters in
	// a name: enough for two swapped ones.
	maxNear  = 3
	maxEdits = 2
	// maxParallel bounds the images that are judged concurrently, as for other commands: a
	// registry accepts that much from one machine.
	maxParallel = 16
)
