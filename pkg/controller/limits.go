package controller

import "time"

const (
	// maxReferences is how many Secrets and ConfigMaps the resources of one
	// namespace may need: each is a watch at the API server.
	maxReferences = 64

	// firstRead is how long a namespace keeps what was in force while a Secret or
	// ConfigMap that it names for the first time is read. Past it, what needs the
	// object denies. The first compilation waits longer: nothing is in force yet.
	firstRead        = 2 * time.Second
	firstReadAtStart = 15 * time.Second

	// missingFor is how long a namespace that does not exist is not looked for
	// again, and maxMissing how many such names are remembered: they come from
	// requests.
	missingFor = time.Second
	maxMissing = 1000
	// lookUpTimeout bounds one look at the API server for a namespace.
	lookUpTimeout = 2 * time.Second

	// retryPause is between two tries of a duty that failed.
	retryPause = 2 * time.Second
	// statusTimeout bounds one write of a status.
	statusTimeout = 10 * time.Second

	// The lease of the replica that writes statuses, as Kubernetes' own
	// components have it.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	leaseRetry    = 2 * time.Second

	// Requests per second to the API server, and in a burst: the start reads one
	// object for each reference of each namespace. The server's own fairness
	// protects it beyond that.
	clientQPS   = 200
	clientBurst = 400
)
