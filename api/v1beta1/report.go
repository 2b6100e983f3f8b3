package v1beta1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reports are objects of the OpenReports API, not of this group. This file defines names and
// values in Landwaiter's reports, for code that writes or reads them.
const (
	// ReportGroup, ReportVersion, ReportKind and ReportResource name the kind of a report.
	ReportGroup    = "openreports.io"
	ReportVersion  = "v1alpha1"
	ReportKind     = "Report"
	ReportResource = "reports"

	// ReportSource is the source of every report and result, and the field manager and
	// reporting component of reports and Events.
	ReportSource = "landwaiter"
	// LabelReport is the label with the subject of a report: ReportRunning or ReportDenied. Readers
	// select reports by this label, and then check the names.
	LabelReport = "landwaiter.dev/report"
	// ReportRunning and ReportDenied are the values of LabelReport, and of the rule in results.
	// ReportUndecided is only a rule: its results are in the report ReportDenied, one for each registry
	// with images that were refused because Landwaiter could not decide about them.
	ReportRunning   = "running"
	ReportDenied    = "denied"
	ReportUndecided = "undecided"
	// RegistriesOther and RegistriesNone are values of PropertyRegistry that no registry has.
	RegistriesOther = "*"
	RegistriesNone  = "-"
	// ReportNameRunning is the name of the report about running images in a namespace. If one
	// report cannot contain all results, the next reports are called ReportNameRunning + "-1" to
	// "-9". ReportNameDenied is the name of the single report about denied images in a namespace.
	ReportNameRunning = "landwaiter-running"
	ReportNameDenied  = "landwaiter-denied"
	// ReportCategory is the category of every result.
	ReportCategory = "Image verification"
	// ReportKindNamespace is the kind of the one resource of a result that is about no workload.
	ReportKindNamespace = "Namespace"
)

// IsolationImage is the repository that check --isolation uses in its dry runs of pods. The host
// can never exist (RFC 6761, section 6.4), so no real image has this name. Reports omit denials
// of this image.
const IsolationImage = "registry.invalid/landwaiter-isolation"

// ReportAbout returns the subject of the report with a name: ReportRunning or ReportDenied. It
// returns "" if Landwaiter never gives a report about a namespace this name.
func ReportAbout(name string) string {
	switch n, numbered := strings.CutPrefix(name, ReportNameRunning+"-"); {
	case name == ReportNameDenied:
		return ReportDenied
	case name == ReportNameRunning, numbered && len(n) == 1 && n[0] >= '1' && n[0] <= '9':
		return ReportRunning
	}
	return ""
}

// ImagesOf names the images of a PropertyRegistry in a sentence.
func ImagesOf(registry string) string {
	switch registry {
	case RegistriesOther:
		return "images of other registries"
	case RegistriesNone:
		return "images whose registry is not the cause"
	}
	return "images of " + registry
}

// IsOwnReport reports whether the name, label, source and field managers of a report are as
// Landwaiter writes them. Anyone who can write reports in the namespace can imitate all of them.
func IsOwnReport(r metav1.Object, source string) bool {
	about, managers := ReportAbout(r.GetName()), r.GetManagedFields()
	return about != "" && r.GetLabels()[LabelReport] == about && source == ReportSource && len(managers) > 0 &&
		!slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != ReportSource })
}

// The results of a report, in the words of the OpenReports API.
const (
	// ReportPass means that the image is verified and allowed.
	ReportPass = "pass"
	// ReportFail means that the image is or was denied.
	ReportFail = "fail"
	// ReportWarn means that the image is allowed with a warning, or by an exception although a
	// policy denies it.
	ReportWarn = "warn"
	// ReportError means that the evidence of the image cannot be read, so the image is undecided
	// for a while. Properties contain the previous result. All results of ReportUndecided have it.
	ReportError = "error"
	// ReportSkip means that policies allow the image without verification. It also marks the one
	// result that contains the number of omitted results.
	ReportSkip = "skip"
)

// The properties of results. All are strings, and are omitted if they have no value. Times are
// in RFC 3339, in UTC. In a result, `policy` is the resource that decided, such as
// "VerificationPolicy team-a/release", and `message` is the reason. `timestamp` is PropertySince
// or PropertyLast, and `resources` are the workloads, or the namespace if there is no workload.
const (
	// PropertyImage is the image reference in the pod, in normalized form. PropertyDigest is the
	// digest that the verdict applies to.
	PropertyImage  = "image"
	PropertyDigest = "digest"
	// PropertyContainer is the container or volume with the image. PropertyContainerType is its
	// type: initContainer, container, ephemeralContainer or volume. Both are only in ReportRunning.
	PropertyContainer     = "container"
	PropertyContainerType = "containerType"
	// PropertyRemediation describes how to fix the problem, PropertyCommand is a command that does, and
	// PropertyContact says whom to ask: the contact of each policy that denies, or of the Tenant,
	// separated by "; ".
	PropertyRemediation = "remediation"
	PropertyCommand     = "command"
	PropertyContact     = "contact"
	// PropertySigners names those whose signatures or attestations of the image were verified, sorted
	// and separated by "; ", as `landwaiter verify --explain` names them: the fingerprint of a key, the
	// issuer and subject of an identity, or the subject of a certificate. It has at most five names and
	// 512 bytes, is only in ReportRunning, and is missing for an image that needs no signature.
	PropertySigners = "signers"
	// PropertySince is when the verdict last changed, or was the same again after a new pod with the image was denied.
	PropertySince = "since"
	// PropertyLooked is when Landwaiter last looked for evidence of an image with ReportFail, to ten minutes: a
	// signature made since may not be in the report yet.
	PropertyLooked = "looked"
	// PropertyLastResult and PropertyLastSince are the result before ReportError and its
	// PropertySince.
	PropertyLastResult = "lastResult"
	PropertyLastSince  = "lastSince"
	// PropertyException is the exception that allows the image. PropertyExceptionEnds is when the
	// exception expires.
	PropertyException     = "exception"
	PropertyExceptionEnds = "exceptionEnds"
	// PropertyCount is how often an image was denied. PropertyFirst and PropertyLast are the times
	// of the first and last denial. PropertyTraceID identifies a request in the log: the first of
	// the most recent denials for the same reason. All are only in ReportDenied. In a result of
	// ReportUndecided, they are about the images of PropertyRegistry.
	PropertyCount   = "count"
	PropertyFirst   = "first"
	PropertyLast    = "last"
	PropertyTraceID = "traceID"
	// PropertyRegistry is the registry that did not answer as it should, so that its images were
	// undecided: [RegistriesOther] for all that are not counted separately, [RegistriesNone] for images
	// whose registry is not the cause. PropertyAnswered is since when Landwaiter decides about its images again.
	// PropertyRemedy is what mends the registry in one word, if that is known: NoSuchHost, DNS, TrustCA, OtherName,
	// Renew, Reissue, ClientCertificate, ServeTLS or Start. All are only in results of ReportUndecided, in which
	// PropertyImage is the last of these images.
	PropertyRegistry = "registry"
	PropertyAnswered = "answered"
	PropertyRemedy   = "remedy"
	// PropertyMatched describes how the resources of a denial were found: by namespace and image.
	// PropertyNote is a hint that a dry run looks like a denial.
	PropertyMatched = "matched"
	PropertyNote    = "note"
	// PropertyCounters is internal: the parts of PropertyCount by replica.
	PropertyCounters = "counters"
	// PropertyLeftOut is the number of results that did not fit into a report. It is in a separate
	// result.
	PropertyLeftOut = "leftOut"
	// PropertyResultID identifies a result among all results in the cluster. It changes with the
	// result, the policy and the reason, but not with the time. Policy Reporter uses it as its key.
	PropertyResultID = "resultID"
)

// The reasons of Events on pods, workloads and namespaces.
const (
	EventImageDenied          = "ImageDenied"
	EventImageUndecided       = "ImageUndecided"
	EventImageNoLongerTrusted = "ImageNoLongerTrusted"
)
