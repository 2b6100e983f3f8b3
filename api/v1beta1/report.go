package v1beta1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reports are objects of the OpenReports API. Landwaiter's own resources are not: this file
// only names what its reports say, for those who write and those who read them.
const (
	// ReportGroup, ReportVersion, ReportKind and ReportResource name the kind of a report.
	ReportGroup    = "openreports.io"
	ReportVersion  = "v1alpha1"
	ReportKind     = "Report"
	ReportResource = "reports"

	// ReportSource is the source of every report and result, and the field manager and
	// reporting component of reports and Events.
	ReportSource = "landwaiter"
	// LabelReport says what a report is about: ReportRunning or ReportDenied. Readers
	// select by it, and then look at names.
	LabelReport = "landwaiter.dev/report"
	// ReportRunning and ReportDenied are the values of LabelReport and, in results, the
	// rule.
	ReportRunning = "running"
	ReportDenied  = "denied"
	// ReportNameRunning is the name of the report on what runs in a namespace. If that is
	// more than one object may hold, the next ones are called ReportNameRunning + "-1" to
	// "-9". ReportNameDenied is the name of the one report on what was denied there.
	ReportNameRunning = "landwaiter-running"
	ReportNameDenied  = "landwaiter-denied"
	// ReportCategory is the category of every result.
	ReportCategory = "Image verification"
)

// IsolationImage is the repository that check --isolation names in its dry runs of pods. Its
// host is reserved to never exist (RFC 6761, section 6.4), so nobody's image is denied by that
// name, and reports leave it out.
const IsolationImage = "registry.invalid/landwaiter-isolation"

// ReportAbout returns what a report of a name is about, ReportRunning or ReportDenied, and ""
// for every name that Landwaiter gives no report about a namespace.
func ReportAbout(name string) string {
	switch n, numbered := strings.CutPrefix(name, ReportNameRunning+"-"); {
	case name == ReportNameDenied:
		return ReportDenied
	case name == ReportNameRunning, numbered && len(n) == 1 && n[0] >= '1' && n[0] <= '9':
		return ReportRunning
	}
	return ""
}

// IsOwnReport reports whether a report, of a source, is as Landwaiter writes it: by name, label and
// field managers. Anyone who may write reports in the namespace can imitate all of them.
func IsOwnReport(r metav1.Object, source string) bool {
	about, managers := ReportAbout(r.GetName()), r.GetManagedFields()
	return about != "" && r.GetLabels()[LabelReport] == about && source == ReportSource && len(managers) > 0 &&
		!slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != ReportSource })
}

// The results of a report, in the words of the OpenReports API.
const (
	// ReportPass is an image that is verified and allowed.
	ReportPass = "pass"
	// ReportFail is an image that is or was denied.
	ReportFail = "fail"
	// ReportWarn is an image that is allowed with a warning, or by an exception although a
	// policy denies it.
	ReportWarn = "warn"
	// ReportError is an image whose evidence cannot be read: undecided for a while.
	// Properties say what was decided last.
	ReportError = "error"
	// ReportSkip is an image that policies allow without verifying anything. It also
	// marks the one result, without resources, that says how many are left out.
	ReportSkip = "skip"
)

// The properties of results. All are strings, absent if there is nothing to say; times are
// RFC 3339 in UTC. `policy` and `message` of a result are the resource that decided, such
// as "VerificationPolicy team-a/release", and the reason; `timestamp` is PropertySince or
// PropertyLast; `resources` are the workloads.
const (
	// PropertyImage is the normalised reference as the pod names it, PropertyDigest the
	// digest that the verdict is about.
	PropertyImage  = "image"
	PropertyDigest = "digest"
	// PropertyContainer is the container or volume that has the image, PropertyContainerType where
	// it is in the pod: initContainer, container, ephemeralContainer or volume. In
	// ReportRunning only.
	PropertyContainer     = "container"
	PropertyContainerType = "containerType"
	// PropertyRemediation says what to do.
	PropertyRemediation = "remediation"
	// PropertySince is since when the verdict has been what it is.
	PropertySince = "since"
	// PropertyLastResult and PropertyLastSince are the result before ReportError.
	PropertyLastResult = "lastResult"
	PropertyLastSince  = "lastSince"
	// PropertyException names the exception that allows the image, and
	// PropertyExceptionEnds is its end.
	PropertyException     = "exception"
	PropertyExceptionEnds = "exceptionEnds"
	// PropertyCount is how often an image was denied, PropertyFirst and PropertyLast when,
	// PropertyTraceID names a request that the log has: the first of the last denials for
	// the same reason. In ReportDenied only.
	PropertyCount   = "count"
	PropertyFirst   = "first"
	PropertyLast    = "last"
	PropertyTraceID = "traceID"
	// PropertyMatched says how resources of a denial were found: by namespace and image.
	// PropertyNote says what else to know: a dry run looks like a denial.
	PropertyMatched = "matched"
	PropertyNote    = "note"
	// PropertyCounters is for Landwaiter alone: the parts of PropertyCount by replica.
	PropertyCounters = "counters"
	// PropertyLeftOut is how many results a report has no room for, in a result of its own.
	PropertyLeftOut = "leftOut"
)

// The reasons of Events on pods, workloads and namespaces.
const (
	EventImageDenied          = "ImageDenied"
	EventImageNoLongerTrusted = "ImageNoLongerTrusted"
)
