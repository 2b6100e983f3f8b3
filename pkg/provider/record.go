package provider

import (
	"slices"
	"time"

	"github.com/sirupsen/logrus"
)

// record counts and logs an exchange: one line for the request, and one for each
// key that is not allowed (all of them at debug level), up to a limit. A request
// that was allowed in whole is of interest to nobody but a debugger: its line is
// at debug level too, since there are thousands of them a second.
func (h *handler) record(x *exchange, status int) {
	duration := time.Since(x.began)
	h.metrics.observe(x, duration)
	level := logrus.InfoLevel
	if x.allAllowed() {
		level = logrus.DebugLevel
	}
	if !h.log.IsLevelEnabled(level) {
		return
	}
	counts := map[keyOutcome]int{}
	for _, q := range x.plan.questions {
		outcome, _ := q.outcome(x.decisions)
		counts[outcome]++
	}
	h.log.WithFields(logrus.Fields{
		"traceID": x.traceID, "endpoint": x.endpoint.label(), "namespace": x.namespace(), "outcome": string(x.outcome),
		"status": status, "duration": duration.String(), "keys": x.asked, "images": len(x.plan.targets),
		"allowed": counts[keyAllowed], "warned": counts[keyWarned], "denied": counts[keyDenied], "invalid": counts[keyInvalid], "undecided": counts[keyUndecided],
	}).Log(level, "request")
	h.recordKeys(x)
}

func (x *exchange) allAllowed() bool {
	return x.outcome == requestAnswered && !slices.ContainsFunc(x.plan.questions, func(q question) bool {
		outcome, _ := q.outcome(x.decisions)
		return outcome != keyAllowed
	})
}

func (h *handler) recordKeys(x *exchange) {
	logged := 0
	for _, q := range x.plan.questions {
		outcome, reason := q.outcome(x.decisions)
		level := logrus.InfoLevel
		switch outcome {
		case keyAllowed:
			level = logrus.DebugLevel
		case keyWarned:
			level = logrus.WarnLevel
		case keyDenied, keyInvalid, keyUndecided:
		}
		if !h.log.IsLevelEnabled(level) {
			continue
		}
		if logged++; logged > maxLoggedKeys {
			return
		}
		fields := logrus.Fields{"traceID": x.traceID, "namespace": x.endpoint.namespace.Label(), "verdict": string(outcome)}
		if q.err != nil {
			fields["key"] = shown(q.key)
		} else {
			t := x.plan.targets[q.target]
			fields["namespace"], fields["image"] = t.namespace.Label(), t.ref.String()
			fields["cached"] = x.decisions[q.target].result.Cached
		}
		if reason != "" {
			fields["reason"] = cut(reason, maxReasonBytes)
		}
		h.log.WithFields(fields).Log(level, "key")
	}
}

// severalNamespaces can be no namespace's name.
const severalNamespaces = "*"

// namespace returns the one namespace that a request is about, for its log line.
func (x *exchange) namespace() string {
	namespace := x.endpoint.namespace
	for i, t := range x.plan.targets {
		switch {
		case i == 0:
			namespace = t.namespace
		case t.namespace != namespace:
			return severalNamespaces
		}
	}
	return namespace.Label()
}
