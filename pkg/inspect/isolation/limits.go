package isolation

import "time"

const (
	// maxTenants bounds how many teams are tried in one run, so that a cluster with
	// hundreds is not asked for half an hour. --tenant names one.
	maxTenants = 10
	// maxPeople bounds whom a team's cases are tried as: a Tenant lists up to 96 people.
	maxPeople = 24
	// maxNamespaces bounds the namespaces of one team in which everything is tried. Without
	// bindings that differ these are two.
	maxNamespaces = 16
	// maxGuarded bounds the objects of the platform that are tried per namespace.
	maxGuarded = 16
	// pageSize bounds one list, and maxPages how many of them are read.
	pageSize = 500
	maxPages = 20
	// requestTimeout bounds one request. Admission webhooks may take thirty seconds.
	requestTimeout = 35 * time.Second
	// perSecond and burst bound the load on the API server, one request at a time.
	perSecond = 500
	burst     = 500
)
