package provider

import (
	"context"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// requestLog is an Observer that logs a line for each request, and one for each key
// that is not allowed, up to a limit. The same line is not logged again for a while,
// which depends on who asks. What is not logged is at debug level, since there are
// thousands of them a second and nobody else needs them.
type requestLog struct {
	log     *logrus.Logger
	account func(verify.Namespace) verify.Account
	repeats map[Source]*repeats
}

func newRequestLog(log *logrus.Logger, account func(verify.Namespace) verify.Account, now func() time.Time) requestLog {
	return requestLog{log: log, account: account, repeats: map[Source]*repeats{
		SourceAdmission: newRepeats(admissionWindow, maxRepeats, now),
		SourceAudit:     newRepeats(auditWindow, maxRepeats, now),
	}}
}

// keyLine is a line about a key.
type keyLine struct {
	level    logrus.Level
	key      *KeyObservation
	repeated int
}

// Observe logs a request.
func (l requestLog) Observe(_ context.Context, o Observation) {
	if o.AllAllowed() && !l.log.IsLevelEnabled(logrus.DebugLevel) {
		return
	}
	level, repeated := logrus.DebugLevel, 0
	lines := l.linesOf(&o)
	for i := range lines {
		level = min(level, max(lines[i].level, logrus.InfoLevel)) // a lower one is more severe
	}
	if o.Outcome != RequestAnswered && o.Outcome != RequestUndecided { // refused, before it was about a namespace
		var own logrus.Level
		own, repeated = l.level(logrus.InfoLevel, o.Source, verify.Cluster.Account(), lineOf(o.Endpoint, string(o.Outcome), strconv.Itoa(o.Status)))
		level = min(level, own)
	}
	if !l.log.IsLevelEnabled(level) {
		return
	}
	counts := map[KeyOutcome]int{}
	for i := range o.Keys {
		counts[o.Keys[i].Outcome]++
	}
	fields := logrus.Fields{
		"traceID": o.TraceID, "source": string(o.Source), "endpoint": o.Endpoint, "outcome": string(o.Outcome),
		"status": o.Status, "duration": o.Duration.String(), "keys": o.Asked, "images": o.Images,
		"allowed": counts[KeyAllowed], "unverified": counts[KeyUnverified], "warned": counts[KeyWarned], "excepted": counts[KeyExcepted], "denied": counts[KeyDenied], "invalid": counts[KeyInvalid], "undecided": counts[KeyUndecided],
	}
	if about := o.About(); about != "" {
		fields["namespace"] = about
	}
	if repeated > 0 {
		fields["repeated"] = repeated
	}
	l.log.WithFields(fields).Log(level, "request")
	for i := range lines {
		l.logKey(&o, &lines[i])
	}
}

// linesOf returns the lines about keys, those at debug level included if they are
// logged.
func (l requestLog) linesOf(o *Observation) []keyLine {
	var lines []keyLine
	for i := range o.Keys {
		k := &o.Keys[i]
		level, repeated := k.level(), 0
		if level != logrus.DebugLevel {
			level, repeated = l.level(level, o.Source, l.account(k.Namespace), k.line())
		}
		if !l.log.IsLevelEnabled(level) {
			continue
		}
		if lines = append(lines, keyLine{level, k, repeated}); len(lines) == maxLoggedKeys {
			break
		}
	}
	return lines
}

// level returns the level of a line, which is debug if it was logged a while ago, and
// how often it came since.
func (l requestLog) level(level logrus.Level, source Source, account verify.Account, what line) (logrus.Level, int) {
	log, repeated := l.repeats[source].fresh(account, what)
	if !log {
		return logrus.DebugLevel, 0
	}
	return level, repeated
}

// line is what makes a line about a key the same as another. Errors of registries differ
// each time, so an undecided image is the same whatever the reason.
func (k *KeyObservation) line() line {
	fields := []string{string(k.Namespace), string(k.Outcome), k.Key, k.policy()}
	if k.Outcome != KeyUndecided {
		fields = append(fields, k.digest(), k.Reason)
	}
	return lineOf(fields...)
}

func (k *KeyObservation) policy() string {
	if k.Result == nil || k.Result.Verdict.Policy.Name == "" {
		return ""
	}
	return k.Result.Verdict.Policy.String()
}

func (k *KeyObservation) digest() string {
	if k.Result == nil {
		return ""
	}
	return k.Result.Digest.String()
}

func (k *KeyObservation) level() logrus.Level {
	switch k.Outcome {
	case KeyAllowed, KeyUnverified:
		return logrus.DebugLevel
	case KeyWarned, KeyExcepted:
		return logrus.WarnLevel
	case KeyDenied, KeyInvalid, KeyUndecided:
	}
	return logrus.InfoLevel
}

func (l requestLog) logKey(o *Observation, about *keyLine) {
	k := about.key
	fields := logrus.Fields{"traceID": o.TraceID, "source": string(o.Source), "verdict": string(k.Outcome)}
	if about := k.About(); about != "" {
		fields["namespace"] = about
	}
	if k.Outcome == KeyInvalid {
		fields["key"] = shown(k.Key)
	} else {
		fields["image"], fields["cached"] = k.Reference.String(), k.Result != nil && k.Result.Cached
	}
	if digest := k.digest(); digest != "" {
		fields["digest"] = digest
	}
	if policy := k.policy(); policy != "" {
		fields["policy"] = policy
	}
	if k.Outcome == KeyExcepted {
		fields["exception"] = k.Result.Exception.String()
		fields["until"] = k.Result.ExceptionEnds.UTC().Format(time.RFC3339)
	}
	if k.Reason != "" {
		fields["reason"] = policy.Cut(k.Reason, maxReasonBytes)
	}
	if about.repeated > 0 {
		fields["repeated"] = about.repeated
	}
	l.log.WithFields(fields).Log(about.level, "key")
}
