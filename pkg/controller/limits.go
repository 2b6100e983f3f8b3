package controller

import "time"

const (
	// maxReferences is the maximum number of Secrets and ConfigMaps that the resources
	// of one namespace may reference. Each needs a watch at the API server.
	maxReferences = 64

	// firstRead is how long a namespace keeps its last configuration while a newly
	// referenced Secret or ConfigMap is read. After that, resources that need the object
	// deny. The first compilation waits longer: there is no configuration to keep.
	firstRead        = 2 * time.Second
	firstReadAtStart = 15 * time.Second

	// missingFor is how long a missing namespace is not looked up again. maxMissing
	// bounds the number of cached names: they come from requests.
	missingFor = time.Second
	maxMissing = 1000
	// lookUpTimeout bounds one request to the API server for a namespace.
	lookUpTimeout = 2 * time.Second

	// retryPause is the pause before a failed duty is retried.
	retryPause = 2 * time.Second
	// statusTimeout bounds the status writes of one namespace.
	statusTimeout = 10 * time.Second

	// Timing of the leader's lease, as in Kubernetes' own components.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	leaseRetry    = 2 * time.Second

	// Rate limit for the API server. It is high because the start reads one object for
	// each reference of each namespace. API Priority and Fairness protects the server.
	clientQPS   = 200
	clientBurst = 400
)
