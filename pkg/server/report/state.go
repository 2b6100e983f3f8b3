package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// state is the reported state of an image in a namespace. The zero value is for an image that
// has not been decided yet.
type state struct {
	result string // such as v1beta1.ReportPass
	since  time.Time
	digest string

	policy, reason, remediation string
	command, contact            string
	signers                     string // whose evidence was verified
	exception                   string
	exceptionEnds               time.Time

	// lastResult and lastSince are from the result before v1beta1.ReportError.
	lastResult string
	lastSince  time.Time
	// looked is when a registry was last asked for evidence, at most lookedEvery too early.
	looked time.Time
	// doubted is since when the image has been undecided, if that is not reported yet.
	doubted time.Time
}

// resultOf returns the word of reports for a result.
func resultOf(r verify.Result) string {
	switch r.Answer() {
	case verify.AnswerAllowed:
		return v1beta1.ReportPass
	case verify.AnswerUnverified:
		return v1beta1.ReportSkip
	case verify.AnswerWarned, verify.AnswerByException:
		return v1beta1.ReportWarn
	case verify.AnswerUndecided:
		return v1beta1.ReportError
	case verify.AnswerDenied, verify.AnswerInvalid:
	}
	return v1beta1.ReportFail
}

// allows reports whether an image with a result may run.
func allows(result string) bool {
	return result == v1beta1.ReportPass || result == v1beta1.ReportWarn || result == v1beta1.ReportSkip
}

// decided returns the last decided result and since when it held.
func (s state) decided() (result string, since time.Time) {
	if s.result == v1beta1.ReportError {
		return s.lastResult, s.lastSince
	}
	return s.result, s.since
}

// next returns the state after a verification, and whether it revoked the image: the image
// was allowed and is now denied.
func (s state) next(found finding, now time.Time) (after state, revoked bool) {
	result, v := found.result, found.result.Verdict
	word := resultOf(result)
	if word == v1beta1.ReportError {
		return s.doubt(v, now), false
	}
	former, since := s.decided()
	if former != word {
		since = now.UTC().Truncate(time.Second)
	}
	after = state{result: word, since: since, digest: string(result.Digest), policy: sourceOf(v.Policy),
		reason: cmp.Or(v.Warning, v.Reason), remediation: v.Remediation, command: v.Command, contact: v.Contact, signers: found.signers}
	if result.Exception != (policy.ObjectRef{}) {
		after.exception, after.exceptionEnds = policy.Shown(result.Exception.String(), maxNameBytes), result.ExceptionEnds
	}
	if after.looked = s.looked; former != word || result.Answered.Sub(s.looked) >= lookedEvery {
		after.looked = latest(s.looked, result.Answered)
	}
	return after, word == v1beta1.ReportFail && allows(former)
}

// latest returns the later of two times in the format of reports.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	if b.IsZero() {
		return b
	}
	return b.UTC().Truncate(time.Second)
}

// doubt returns the state after an undecided verification. It keeps the reported state for a
// while. The text of an error stays, because each retry has another one.
func (s state) doubt(v policy.Verdict, now time.Time) state {
	if s.result == v1beta1.ReportError {
		return s
	}
	patience := undecidedFor
	if s.result == "" {
		patience = undecidedNew
	}
	if s.doubted.IsZero() {
		s.doubted = now.UTC().Truncate(time.Second)
	}
	if now.Sub(s.doubted) < patience {
		return s
	}
	return state{result: v1beta1.ReportError, since: s.doubted, digest: s.digest, policy: sourceOf(v.Policy), lastResult: s.result,
		lastSince: s.since, looked: s.looked,
		reason: v.Reason, remediation: v.Remediation, command: v.Command, contact: v.Contact}
}

// signersOf names the signers whose evidence was verified, in a stable order.
func signersOf(findings []policy.Finding) string {
	var names []string
	for _, f := range findings {
		if f.Proven() {
			names = append(names, strings.ReplaceAll(f.Signer(), ";", "%3B"))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	shown, room := 0, maxSignersBytes-len("and 999 more")
	for shown < min(len(names), maxSigners) && (shown == 0 || len(names[shown])+len("; ") <= room) {
		room -= len(names[shown]) + len("; ")
		shown++
	}
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown], fmt.Sprintf("and %d more", more))
	}
	return policy.Shown(strings.Join(names, "; "), maxSignersBytes)
}

// sourceOf returns the resource that decided, which a result must name.
func sourceOf(source policy.ObjectRef) string { return policy.Shown(source.String(), maxNameBytes) }

// load reads a report that the last leader wrote, and returns its size in bytes, for running
// images at most limit. Reports of other writers are replaced. Anyone who can write reports in
// the namespace can imitate ours, so the content of a report only affects its namespace.
func (s *space) load(r *openreports.Report, now time.Time, limit int) (taken int) {
	s.written[r.Name] = written{version: r.ResourceVersion}
	if !v1beta1.IsOwnReport(r, r.Source) || len(r.Results) > maxResults {
		return 0
	}
	s.written[r.Name] = written{version: r.ResourceVersion, hash: hashOf(r)}
	for i := range r.Results {
		switch result := &r.Results[i]; {
		case result.Properties[v1beta1.PropertyLeftOut] != "":
		case r.Labels[v1beta1.LabelReport] == v1beta1.ReportRunning:
			if size := weight(result); taken+size <= limit {
				taken += size
				s.loadRunning(result, now)
			}
		case r.Labels[v1beta1.LabelReport] == v1beta1.ReportDenied:
			s.loadDenied(result, now)
		}
	}
	return taken
}

// weight returns the approximate size of a result in bytes.
func weight(r *openreports.ReportResult) int {
	size := minResultBytes + len(r.Policy) + len(r.Description)
	for name, value := range r.Properties {
		size += len(name) + len(value)
	}
	for i := range r.Subjects {
		of := &r.Subjects[i]
		size += len(of.APIVersion) + len(of.Kind) + len(of.Name) + len(of.UID)
	}
	return size
}

// loadRunning reads the state of an image, and its container: the pod may be about to come
// back.
func (s *space) loadRunning(r *openreports.ReportResult, now time.Time) {
	p := r.Properties
	st := state{result: string(r.Result), since: parseStamp(p[v1beta1.PropertySince]),
		digest: policy.Shown(p[v1beta1.PropertyDigest], maxNameBytes), policy: policy.Shown(r.Policy, maxNameBytes),
		reason: policy.Shown(r.Description, maxReasonBytes), remediation: policy.Shown(p[v1beta1.PropertyRemediation], maxRemediationBytes),
		command: policy.Shown(p[v1beta1.PropertyCommand], maxCommandBytes), contact: policy.Shown(p[v1beta1.PropertyContact], maxContactBytes),
		signers: policy.Shown(p[v1beta1.PropertySigners], maxSignersBytes), exception: policy.Shown(p[v1beta1.PropertyException], maxNameBytes),
		exceptionEnds: parseStamp(p[v1beta1.PropertyExceptionEnds]),
		lastResult:    p[v1beta1.PropertyLastResult], lastSince: parseStamp(p[v1beta1.PropertyLastSince]),
		looked: parseStamp(p[v1beta1.PropertyLooked])}
	name := p[v1beta1.PropertyImage]
	if name == "" || len(name) > maxImageBytes || st.since.IsZero() || st.since.After(now.Add(maxAhead)) || severityOrder(st.result) < 0 {
		return
	}
	if st.lastResult != "" && severityOrder(st.lastResult) < 0 {
		return
	}
	if _, known := s.images[name]; !known {
		s.images[name] = st
	}
	if len(r.Subjects) != 1 {
		return
	}
	of := r.Subjects[0]
	s.rows[workload.Running{Of: workload.Ref{APIVersion: policy.Shown(of.APIVersion, maxNameBytes), Kind: policy.Shown(of.Kind, maxNameBytes),
		Name: policy.Shown(of.Name, maxNameBytes), UID: of.UID},
		ContainerType: workload.ContainerType(policy.Shown(p[v1beta1.PropertyContainerType], maxNameBytes)),
		Container:     policy.Shown(p[v1beta1.PropertyContainer], maxNameBytes), Image: name}] = now
}

func (s *space) loadDenied(r *openreports.ReportResult, now time.Time) {
	p := r.Properties
	d := &denial{image: policy.Shown(p[v1beta1.PropertyImage], maxImageBytes), digest: policy.Shown(p[v1beta1.PropertyDigest], maxNameBytes),
		policy: policy.Shown(r.Policy, maxNameBytes),
		reason: policy.Shown(r.Description, maxReasonBytes), remediation: policy.Shown(p[v1beta1.PropertyRemediation], maxRemediationBytes),
		command: policy.Shown(p[v1beta1.PropertyCommand], maxCommandBytes), contact: policy.Shown(p[v1beta1.PropertyContact], maxContactBytes),
		traceID: p[v1beta1.PropertyTraceID],
		first:   parseStamp(p[v1beta1.PropertyFirst]), last: parseStamp(p[v1beta1.PropertyLast]),
		answered: parseStamp(p[v1beta1.PropertyAnswered])}
	if d.first.IsZero() || d.last.Before(d.first) || d.last.After(now.Add(maxAhead)) || now.Sub(d.last) > keepDenials ||
		!traceName.MatchString(d.traceID) || !d.restore(p[v1beta1.PropertyCounters]) {
		return
	}
	if registry := policy.Shown(p[v1beta1.PropertyRegistry], maxNameBytes); registry != "" {
		if remedy := policy.Remedy(p[v1beta1.PropertyRemedy]); remedy.At(registry) != "" {
			d.remedy = remedy
		}
		s.loadRegistry(registry, d, now)
		return
	}
	if known := s.denials[d.image]; known != nil {
		known.merge(d, now)
		return
	}
	if len(s.denials) < maxDenials {
		s.denials[d.image] = d
	}
}
