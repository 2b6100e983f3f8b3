package provider

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Observer is called for every request after its answer was sent, on the goroutine that
// answers the next request of the connection: it must not block. It must not modify its
// argument. It is safe for concurrent use.
type Observer interface {
	Observe(ctx context.Context, o Observation)
}

// Observation is a request and its answer.
type Observation struct {
	// TraceID identifies the request in logs and answers.
	TraceID string
	// Requested is when the header of the request had arrived, Duration the time from then to
	// the answer.
	Requested time.Time
	Duration  time.Duration
	// Endpoint is the name of the path, one of a fixed few, and Operation its operation, "" for
	// an unknown path.
	Endpoint  string
	Operation Operation
	// Source is admission, or Gatekeeper's audit at its own path.
	Source Source
	// Status is the HTTP status of the answer.
	Status  int
	Outcome RequestOutcome
	// Namespace is the namespace in the path, if the endpoint has one. Each key has its own.
	Namespace verify.Namespace
	// Asked is the number of keys including duplicates, Images the number of distinct images.
	Asked, Images int
	// Keys has each distinct key once. It is empty if the request was refused.
	Keys []KeyObservation
}

// KeyObservation is the answer to one key.
type KeyObservation struct {
	// Key is the key as the client sent it: a stranger's text.
	Key       string
	Namespace verify.Namespace
	// Reference is the zero value for a malformed key.
	Reference image.Reference
	Answer    verify.Answer
	Reason    string
	// Cause is a word for why an image is undecided, as in [policy.Verdict].
	Cause policy.Reason
	// Result is the Decider's result. It is nil for mutations, malformed keys, and images whose
	// verification did not end in time or failed.
	Result *verify.Result
	// Began is when the work on the image began, and Duration how long it took. Both are zero
	// for a cached verdict.
	Began    time.Time
	Duration time.Duration
	// Repeated says that an earlier key is about the same image and has the same Result.
	Repeated bool
}

// Source is the source of a request in logs, metrics and traces.
type Source string

// The sources of requests.
const (
	SourceAdmission Source = "admission" // at every path but that of audits
	SourceAudit     Source = "audit"     // about objects that already exist
)

// RequestOutcome is the result of a request, as logs and metrics call it.
type RequestOutcome string

// The outcomes of requests.
const (
	RequestAnswered   RequestOutcome = "answered"
	RequestUndecided  RequestOutcome = "undecided"
	RequestOverloaded RequestOutcome = "overloaded"
	RequestForbidden  RequestOutcome = "forbidden"
	RequestMalformed  RequestOutcome = "malformed"
	RequestFailed     RequestOutcome = "failed"
)

// requestOutcomes returns all of them.
func requestOutcomes() []RequestOutcome {
	return []RequestOutcome{RequestAnswered, RequestUndecided, RequestOverloaded, RequestForbidden, RequestMalformed, RequestFailed}
}

// AllAllowed reports whether every key was allowed without a warning.
func (o *Observation) AllAllowed() bool {
	return o.Outcome == RequestAnswered && !slices.ContainsFunc(o.Keys, func(k KeyObservation) bool {
		return k.Answer != verify.AnswerAllowed && k.Answer != verify.AnswerUnverified
	})
}

// Counts returns how many keys have each answer.
func (o *Observation) Counts() map[verify.Answer]int {
	counts := map[verify.Answer]int{}
	for i := range o.Keys {
		counts[o.Keys[i].Answer]++
	}
	return counts
}

// severalNamespaces is not a valid name of a namespace.
const severalNamespaces = "*"

// About returns the label of the request's only namespace, "*" if there are several, and ""
// if there is none: it was refused before its keys were read, or they are not images.
func (o *Observation) About() string {
	about := ""
	for i := range o.Keys {
		about = aboutBoth(about, o.Keys[i].About())
	}
	if about == "" && o.Namespace != verify.Cluster {
		return o.Namespace.Label()
	}
	return about
}

// About returns the label of the key's namespace, "" for a malformed key without a valid
// namespace.
func (k *KeyObservation) About() string {
	if k.Answer == verify.AnswerInvalid && k.Namespace == verify.Cluster {
		return ""
	}
	return k.Namespace.Label()
}

// Undecided reports whether the image has neither a verdict nor, for a mutation, a digest.
func (k *KeyObservation) Undecided() bool { return k.Answer == verify.AnswerUndecided }

// aboutBoth combines two labels of About.
func aboutBoth(one, other string) string {
	switch {
	case one == "" || one == other:
		return other
	case other == "":
		return one
	}
	return severalNamespaces
}

// about returns [Observation.About] for an exchange that did not finish.
func (x *exchange) about() string {
	if x.endpoint.namespace != verify.Cluster {
		return x.endpoint.namespace.Label()
	}
	about := ""
	for _, t := range x.plan.targets {
		about = aboutBoth(about, t.namespace.Label())
	}
	return about
}

// observation returns the Observation of an exchange that ends now.
func (x *exchange) observation(status int) Observation {
	o := Observation{
		TraceID: x.traceID, Requested: x.began, Duration: time.Since(x.began),
		Endpoint: x.endpoint.name, Operation: x.endpoint.operation, Source: cmp.Or(x.endpoint.source, SourceAdmission),
		Namespace: x.endpoint.namespace,
		Status:    status, Outcome: x.outcome, Asked: x.asked, Images: len(x.plan.targets),
		Keys: make([]KeyObservation, len(x.plan.keys)),
	}
	seen := 0 // targets are numbered in the order in which keys name them
	for i, k := range x.plan.keys {
		found := &o.Keys[i]
		found.Key, found.Namespace = k.key, cmp.Or(x.endpoint.namespace, k.namespace)
		found.Answer, found.Reason = k.answer(x.decisions)
		if k.err != nil {
			continue
		}
		target, d := x.plan.targets[k.target], &x.decisions[k.target]
		found.Namespace, found.Reference = target.namespace, target.ref
		found.Began, found.Duration = d.began, d.took
		if found.Cause = d.result.Verdict.Cause; d.answer == "" {
			found.Cause = x.late
		}
		if d.judged {
			found.Result = &d.result
		}
		found.Repeated = k.target < seen
		seen = max(seen, k.target+1)
	}
	return o
}
