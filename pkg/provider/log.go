package provider

import (
	"context"

	"github.com/sirupsen/logrus"
)

// requestLog is an Observer that logs a line for each request, and one for each key
// that is not allowed, up to a limit. At debug level it logs every key. The line of
// a request that is allowed in whole is at debug level too, since there are
// thousands of them a second and nobody else needs them.
type requestLog struct{ log *logrus.Logger }

func (l requestLog) Observe(_ context.Context, o Observation) {
	level := logrus.InfoLevel
	if o.AllAllowed() {
		level = logrus.DebugLevel
	}
	if !l.log.IsLevelEnabled(level) {
		return
	}
	counts := map[KeyOutcome]int{}
	for i := range o.Keys {
		counts[o.Keys[i].Outcome]++
	}
	l.log.WithFields(logrus.Fields{
		"traceID": o.TraceID, "endpoint": o.Endpoint, "namespace": about(&o), "outcome": string(o.Outcome),
		"status": o.Status, "duration": o.Duration.String(), "keys": o.Asked, "images": o.Images,
		"allowed": counts[KeyAllowed], "unverified": counts[KeyUnverified], "warned": counts[KeyWarned], "denied": counts[KeyDenied], "invalid": counts[KeyInvalid], "undecided": counts[KeyUndecided],
	}).Log(level, "request")
	logged := 0
	for i := range o.Keys {
		level := o.Keys[i].level()
		if !l.log.IsLevelEnabled(level) {
			continue
		}
		if logged++; logged > maxLoggedKeys {
			return
		}
		l.logKey(level, o.TraceID, &o.Keys[i])
	}
}

// severalNamespaces is not a valid name of a namespace.
const severalNamespaces = "*"

// about returns the one namespace that a request is about.
func about(o *Observation) string {
	namespace, found := o.Namespace, false
	for i := range o.Keys {
		k := &o.Keys[i]
		switch {
		case k.Outcome == KeyInvalid:
		case found && k.Namespace != namespace:
			return severalNamespaces
		default:
			namespace, found = k.Namespace, true
		}
	}
	return namespace.Label()
}

func (k *KeyObservation) level() logrus.Level {
	switch k.Outcome {
	case KeyAllowed, KeyUnverified:
		return logrus.DebugLevel
	case KeyWarned:
		return logrus.WarnLevel
	case KeyDenied, KeyInvalid, KeyUndecided:
	}
	return logrus.InfoLevel
}

func (l requestLog) logKey(level logrus.Level, traceID string, k *KeyObservation) {
	fields := logrus.Fields{"traceID": traceID, "namespace": k.Namespace.Label(), "verdict": string(k.Outcome)}
	if k.Outcome == KeyInvalid {
		fields["key"] = shown(k.Key)
	} else {
		fields["image"], fields["cached"] = k.Reference.String(), k.Result != nil && k.Result.Cached
	}
	if k.Reason != "" {
		fields["reason"] = cut(k.Reason, maxReasonBytes)
	}
	l.log.WithFields(fields).Log(level, "key")
}
