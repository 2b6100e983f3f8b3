package isolation

import "time"

const (
	// maxTenants bounds the teams that are tried in one run, so that a cluster with hundreds
	// does not take half an hour. --tenant names one.
	maxTenants = 10
	// maxPeople bounds the people who are impersonated for a team's cases: a Tenant lists up to 96
	// people.
	maxPeople = 24
	// maxNamespaces bounds the namespaces of one team in which everything is tried. If all
	// bindings are equal, these are two.
	maxNamespaces = 16
	// maxGuarded bounds the platform's objects that are tried per namespace.
	maxGuarded = 16
	// pageSize bounds one list, and maxPages the number of pages.
	pageSize = 500
	maxPages = 20
	// requestTimeout bounds one request. Admission webhooks may take thirty seconds.
	requestTimeout = 35 * time.Second
	// perSecond and burst bound the load on the API server, one request at a time.
	perSecond = 500
	burst     = 500
)
