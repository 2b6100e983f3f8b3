package provider

import (
	"container/heap"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/sirupsen/logrus"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// requestLog is an Observer that logs a line for each request, and one for each key that is
// not allowed, up to a limit. It does not repeat a line for a while, which depends on the
// source. All other lines are at debug level, since there are thousands per second.
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
	if o.Outcome != RequestAnswered && o.Outcome != RequestUndecided { // refused before its namespace was known
		var own logrus.Level
		own, repeated = l.level(logrus.InfoLevel, o.Source, verify.Cluster.Account(),
			lineOf(o.Endpoint, string(o.Outcome), strconv.Itoa(o.Status)))
		level = min(level, own)
	}
	if !l.log.IsLevelEnabled(level) {
		return
	}
	counts := o.Counts()
	fields := logrus.Fields{
		"traceID": o.TraceID, "source": string(o.Source), "endpoint": o.Endpoint, "outcome": string(o.Outcome),
		"status": o.Status, "duration": o.Duration.String(), "keys": o.Asked, "images": o.Images,
		"allowed": counts[verify.AnswerAllowed], "unverified": counts[verify.AnswerUnverified], "warned": counts[verify.AnswerWarned],
		"excepted": counts[verify.AnswerByException],
		"denied":   counts[verify.AnswerDenied], "invalid": counts[verify.AnswerInvalid], "undecided": counts[verify.AnswerUndecided],
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

// linesOf returns the lines about keys, including those at debug level if that is enabled.
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

// level returns the level of a line, which is debug if it was logged recently, and how often
// it has occurred since.
func (l requestLog) level(level logrus.Level, source Source, account verify.Account, what line) (logrus.Level, int) {
	log, repeated := l.repeats[source].fresh(account, what)
	if !log {
		return logrus.DebugLevel, 0
	}
	return level, repeated
}

// line identifies equal lines about a key. Errors of registries differ each time, so an
// undecided image is the same regardless of the reason.
func (k *KeyObservation) line() line {
	fields := []string{string(k.Namespace), string(k.Answer), k.Key, k.policy()}
	if !k.Undecided() {
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
	switch k.Answer {
	case verify.AnswerAllowed, verify.AnswerUnverified:
		return logrus.DebugLevel
	case verify.AnswerWarned, verify.AnswerByException:
		return logrus.WarnLevel
	case verify.AnswerDenied, verify.AnswerInvalid, verify.AnswerUndecided:
	}
	return logrus.InfoLevel
}

func (l requestLog) logKey(o *Observation, about *keyLine) {
	k := about.key
	fields := logrus.Fields{"traceID": o.TraceID, "source": string(o.Source), "verdict": string(k.Answer)}
	if about := k.About(); about != "" {
		fields["namespace"] = about
	}
	if k.Answer == verify.AnswerInvalid {
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
	if k.Answer == verify.AnswerByException {
		fields["exception"] = k.Result.Exception.String()
		fields["until"] = k.Result.ExceptionEnds.UTC().Format(time.RFC3339)
	}
	if k.Reason != "" {
		fields["reason"] = policy.Cut(k.Reason, maxReasonBytes)
		if k.Result != nil && len(k.Result.Verdict.Others) > 0 {
			fields["reason"] = k.Result.Verdict.Reasons(maxReasonBytes)
		}
	}
	if about.repeated > 0 {
		fields["repeated"] = about.repeated
	}
	l.log.WithFields(fields).Log(about.level, "key")
}

// denials remembers the traceID of the first of equal denials, for the answers to later ones.
// Kubernetes counts Events with the same text, and the pods of a ReplicaSet are denied
// repeatedly: with a different traceID, each denial would be a separate Event. If one account
// is denied more images than are remembered, others' denials get new traceIDs, which does no
// harm.
type denials struct {
	known interface { // a cache of otter, whose type every package that sees it would compile again
		GetIfPresent(denial) (firstDenial, bool)
		Set(denial, firstDenial) (firstDenial, bool)
	}
}

// denial identifies equal denials.
type denial struct {
	namespace verify.Namespace
	line      line
}

// firstDenial is the request whose traceID is shown.
type firstDenial struct {
	traceID string
	at      time.Time
}

func newDenials() denials {
	return denials{otter.Must(&otter.Options[denial, firstDenial]{MaximumSize: maxDenials})}
}

// traceID returns the traceID for the answer to x: its own, or the one of the first equal
// denial.
func (d denials) traceID(x *exchange) string {
	for _, k := range x.plan.keys {
		answer, reason := k.answer(x.decisions)
		if answer != verify.AnswerDenied && answer != verify.AnswerInvalid {
			continue
		}
		same := denial{namespace: k.namespace, line: lineOf(k.key, reason)}
		if k.err == nil {
			same = denial{x.plan.targets[k.target].namespace, lineOf(k.key, reason, x.decisions[k.target].result.Digest.String())}
		}
		if first, ok := d.known.GetIfPresent(same); ok && x.began.Sub(first.at) < denialWindow {
			return first.traceID
		}
		d.known.Set(same, firstDenial{x.traceID, x.began})
		break
	}
	return x.traceID
}

// repeats remembers log lines, so that the same one is logged once in a window. An audit
// finds the same denied pods every minute, and a ReplicaSet retries forever.
//
// All accounts share a number of lines evenly: a new line replaces the oldest line of the
// account with the most. An account without space for a line logs one for all such lines once
// in a while. So no account fills the log or the memory, and none affects the lines of an
// account within its even share. It is safe for concurrent use.
type repeats struct {
	window time.Duration
	limit  int
	now    func() time.Time

	mu       sync.Mutex
	known    map[line]*repeat
	order    *list.List // of *repeat, the least recently logged first
	accounts map[verify.Account]*crowd
	largest  largest
	rest     repeat // the lines of accounts without space for each
}

// line identifies equal lines: a hash of its fields.
type line [sha256.Size]byte

func lineOf(fields ...string) line {
	hash := sha256.New()
	for _, field := range fields {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		hash.Write(length[:])
		hash.Write([]byte(field))
	}
	return line(hash.Sum(nil))
}

// repeat is one logged line.
type repeat struct {
	line   line
	of     *crowd
	logged time.Time
	again  int // times since then

	inOrder, inCrowd *list.Element
}

// crowd is the remembered lines of an account, and the lines without space.
type crowd struct {
	account verify.Account
	lines   *list.List // of *repeat, the least recently logged first
	over    repeat
	index   int // in largest
}

// largest is a heap of accounts, of which the first has the most lines.
type largest []*crowd

func (h *largest) Len() int           { return len(*h) }
func (h *largest) Less(i, j int) bool { return (*h)[i].lines.Len() > (*h)[j].lines.Len() }

func (h *largest) Swap(i, j int) {
	(*h)[i], (*h)[j] = (*h)[j], (*h)[i]
	(*h)[i].index, (*h)[j].index = i, j
}

// Push implements [heap.Interface].
func (h *largest) Push(x any) {
	of := x.(*crowd) //nolint:forcetypeassert // the heap has nothing else
	of.index = len(*h)
	*h = append(*h, of)
}

// Pop implements [heap.Interface].
func (h *largest) Pop() any {
	last := len(*h) - 1
	of := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return of
}

func newRepeats(window time.Duration, lines int, now func() time.Time) *repeats {
	return &repeats{window: window, limit: lines, now: now, known: map[line]*repeat{}, order: list.New(),
		accounts: map[verify.Account]*crowd{}}
}

// fresh reports whether to log a line of an account, and how often it has occurred since it
// was last logged.
func (r *repeats) fresh(account verify.Account, l line) (log bool, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.expire(now)
	if known, ok := r.known[l]; ok {
		if log, repeated = known.count(now, r.window); log {
			r.order.MoveToBack(known.inOrder)
			known.of.lines.MoveToBack(known.inCrowd)
		}
		return log, repeated
	}
	of := r.accounts[account]
	switch {
	case r.room(of):
	case of == nil:
		return r.rest.count(now, crowdedInterval)
	default:
		return of.over.count(now, crowdedInterval)
	}
	if of == nil {
		of = &crowd{account: account, lines: list.New()}
		r.accounts[account] = of
		heap.Push(&r.largest, of)
	}
	known := &repeat{line: l, of: of, logged: now}
	known.inOrder, known.inCrowd = r.order.PushBack(known), of.lines.PushBack(known)
	r.known[l] = known
	heap.Fix(&r.largest, of.index)
	return true, 0
}

// room reports whether there is space for another line of an account, which may be nil. It
// takes the space from the account with the most lines, unless that would then have fewer.
func (r *repeats) room(of *crowd) bool {
	if len(r.known) < r.limit {
		return true
	}
	have, most := 0, r.largest[0]
	if of != nil {
		have = of.lines.Len()
	}
	if most.lines.Len() <= have+1 {
		return false
	}
	r.forget(most.lines.Front())
	return true
}

// count counts a line, and reports whether the window since it was logged is over.
func (r *repeat) count(now time.Time, window time.Duration) (log bool, repeated int) {
	if !r.logged.IsZero() && now.Sub(r.logged) < window {
		r.again++
		return false, 0
	}
	repeated = r.again
	r.logged, r.again = now, 0
	return true, repeated
}

// expire forgets lines that have not occurred again, one window after the window in which
// they are not logged: until then, the next occurrence reports the count.
func (r *repeats) expire(now time.Time) {
	for element := r.order.Front(); element != nil; element = r.order.Front() {
		if oldest := element.Value.(*repeat); now.Sub(oldest.logged) < 2*r.window { //nolint:forcetypeassert // the list has nothing else
			return
		}
		r.forget(element)
	}
}

// forget forgets the line of an element of either list.
func (r *repeats) forget(element *list.Element) {
	known := element.Value.(*repeat) //nolint:forcetypeassert // the lists have nothing else
	r.order.Remove(known.inOrder)
	delete(r.known, known.line)
	of := known.of
	of.lines.Remove(known.inCrowd)
	heap.Fix(&r.largest, of.index)
	if of.lines.Len() == 0 {
		heap.Remove(&r.largest, of.index)
		delete(r.accounts, of.account)
	}
}
