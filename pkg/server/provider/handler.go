package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// handler answers requests. It is an http.Handler by itself, without a ServeMux,
// which would redirect paths that it finds unclean.
type handler struct {
	decider  Decider
	resolver Resolver
	log      *logrus.Logger
	metrics  *metrics
	options  Options
	draining atomic.Bool                 // connections end with their next answer
	door     *fair.Gate[verify.Account]  // keys that were read and are not decided yet
	turns    *fair.Turns[verify.Account] // to recall and to encode
	buffers  sync.Pool                   // of *bytes.Buffer, for requests and responses
	parse    parser
	denials  denials

	verification, mutation operation
	observers              []Observer

	authorizeClient authorizer
}

// operation has the differences between verification and mutation.
type operation struct {
	timeout time.Duration
	recall  work // decides without waiting; nil if that is not possible
	decide  work
	answer  func(*exchange) answer // called once every target is decided
}

func newHandler(decider Decider, resolver Resolver, log *logrus.Logger, options Options, authorizeClient authorizer) *handler {
	m := newMetrics(options.Metrics, options.NamespaceLabel, options.Quota)
	h := &handler{
		decider: decider, resolver: resolver, log: log, options: options, metrics: m,
		door: fair.NewGate[verify.Account](int64(options.MaxKeys)), parse: remembering(), denials: newDenials(),
		turns:     fair.NewTurns[verify.Account](runtime.GOMAXPROCS(0), time.Now),
		buffers:   sync.Pool{New: func() any { return new(bytes.Buffer) }},
		observers: append([]Observer{m, newRequestLog(log, decider.Account, time.Now)}, options.Observers...), authorizeClient: authorizeClient,
	}
	h.verification = operation{timeout: options.VerifyTimeout, recall: h.recall, decide: h.verify, answer: func(x *exchange) answer {
		return verified{brief: x.endpoint.brief, plan: x.plan, decisions: x.decisions, traceID: h.denials.traceID(x), now: x.began}
	}}
	h.mutation = operation{timeout: options.MutateTimeout, decide: h.resolve, answer: func(x *exchange) answer {
		return plain{list: x.plan.mutated(x.decisions, options.DropTag, h.denials.traceID(x))}
	}}
	return h
}

func (h *handler) operation(name Operation) *operation {
	if name == OperationMutate {
		return &h.mutation
	}
	return &h.verification
}

// exchange is a request and the state of its answer.
type exchange struct {
	began     time.Time
	traceID   string
	endpoint  endpoint
	asked     int // number of keys, with repetitions
	plan      plan
	decisions []decision
	outcome   RequestOutcome
	late      policy.Reason              // why decisions that are missing were not made in time
	turn      *fair.Turn[verify.Account] // of the request, while it needs a processor
}

func outcomeOf(status int) RequestOutcome {
	switch status {
	case http.StatusOK:
		return RequestUndecided
	case http.StatusServiceUnavailable:
		return RequestOverloaded
	case http.StatusForbidden:
		return RequestForbidden
	case http.StatusInternalServerError:
		return RequestFailed
	}
	return RequestMalformed
}

// ServeHTTP answers every request with a well-formed ProviderResponse, because Gatekeeper
// reads the body regardless of the status. The status is 200 for every well-formed request,
// even if it could not be decided.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.metrics.inFlight.Inc()
	defer h.metrics.inFlight.Dec()
	x := &exchange{began: time.Now(), traceID: newTraceID(), outcome: RequestAnswered, endpoint: endpoint{name: unknownEndpoint}}
	buffer, _ := h.buffers.Get().(*bytes.Buffer)
	defer h.recycle(buffer)

	status := http.StatusOK
	if refused := h.answer(w, r, buffer, x); refused != nil {
		status, x.outcome = refused.status, outcomeOf(refused.status)
		if err := encode(buffer, plain{systemError: refused.text + traced(x.traceID)}); err != nil {
			h.logOf(x).WithError(err).Error("a system error could not be encoded")
		}
	}
	h.write(w, status, buffer.Bytes(), outlived(r.Context(), x.began))
	o := x.observation(status)
	for _, observer := range h.observers {
		observer.Observe(r.Context(), o)
	}
}

// logOf returns the log for lines about an exchange.
func (h *handler) logOf(x *exchange) *logrus.Entry {
	log := h.log.WithField("traceID", x.traceID)
	if about := x.about(); about != "" {
		log = log.WithField("namespace", about)
	}
	return log
}

// recycle returns a buffer to the pool, unless a large request has grown it.
func (h *handler) recycle(buffer *bytes.Buffer) {
	const usual = 64 << 10
	if buffer.Cap() <= usual {
		buffer.Reset()
		h.buffers.Put(buffer)
	}
}

// write answers, and ends the connection if this is its last answer.
func (h *handler) write(w http.ResponseWriter, status int, body []byte, last bool) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if last || h.draining.Load() || status == http.StatusForbidden {
		header.Set("Connection", "close")
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return // the client is gone
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush() // the client need not wait for the log
	}
}

// answer encodes the items for a request into buffer, or returns why there are none.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer, x *exchange) (refused *refusal) {
	defer func() { x.turn.Leave() }()
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			h.logOf(x).WithField("stack", policy.Cut(string(debug.Stack()), maxStackBytes)).Error("panic in the handler")
			refused = refuse(http.StatusInternalServerError, "internal error")
		}
	}()
	var err error
	if x.endpoint, err = parsePath(r.URL.EscapedPath()); err != nil {
		return refuse(http.StatusNotFound, "%v", err)
	}
	if err := h.authorizeClient(r); err != nil {
		return refuse(http.StatusForbidden, "the client is not authorized: %v", err)
	}
	answer, refused := h.decideAll(w, r, buffer, x)
	if refused != nil {
		return refused
	}
	if err := encode(buffer, answer); err != nil {
		if !errors.As(err, &refused) {
			refused = refuse(http.StatusInternalServerError, "internal error: the answer could not be encoded")
		}
	}
	return refused
}

// decideAll reads the request and decides about all of its keys before the
// deadline of its operation.
func (h *handler) decideAll(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer, x *exchange) (answer, *refusal) {
	op := h.operation(x.endpoint.operation)
	margin := op.timeout / marginParts
	workBy := x.began.Add(op.timeout - margin)

	keys, refused := h.read(w, r, buffer, workBy)
	if refused != nil {
		return nil, refused
	}
	x.asked = len(keys)
	if len(keys) > maxImages { // parsing takes ten milliseconds, which the account pays for
		first, _ := x.endpoint.parseKey(keys[0], h.parse) // a malformed image has a namespace too
		account := h.decider.Account(first.namespace)
		if x.turn = h.turns.Try(account); x.turn == nil {
			return nil, refuse(http.StatusServiceUnavailable, "overloaded: no processor is free to read so many images of %s, try again",
				account.Describe())
		}
	}
	plan, refused := x.endpoint.plan(keys, h.parse)
	if refused != nil {
		return nil, refused
	}
	// A request takes places only from here on: a slow client must not keep others out.
	places, account, ok := h.enter(plan)
	if !ok {
		return nil, refuse(http.StatusServiceUnavailable, "overloaded: %s has too many images in flight, try again", account.Describe())
	}
	defer places.leave()
	for i := range plan.keys {
		if k := &plan.keys[i]; k.err != nil {
			k.contact = h.options.Contact(cmp.Or(x.endpoint.namespace, k.namespace))
		}
	}
	x.plan = plan

	if err := h.decide(r.Context(), op, x, places, workBy, margin/2); err != nil {
		return nil, refuse(http.StatusServiceUnavailable, "overloaded: no processor was free for %s in time, try again", places.payer.Describe())
	}
	for i := range x.decisions {
		if !x.decisions[i].decided() {
			return nil, &refusal{http.StatusOK, undecidedText(x.plan, x.decisions, x.endpoint)}
		}
	}
	return op.answer(x), nil
}

// decide fills x.decisions. It recalls known verdicts on this goroutine, in turns of the
// account, and leaves the rest to workers, for which it waits until workBy and the grace
// period after it. If everything is decided, it returns while holding the turn, for the
// answer. It fails if it gets no turn in time.
func (h *handler) decide(ctx context.Context, op *operation, x *exchange, places *places, workBy time.Time, grace time.Duration) error {
	ctx, cancel := withDeadline(ctx, workBy)
	defer cancel()
	x.decisions = make([]decision, len(x.plan.targets))
	if x.turn == nil {
		var err error
		if x.turn, err = h.turns.Take(ctx, places.payer); err != nil {
			return err
		}
	}
	left, err := h.recallAll(ctx, op, x, workBy)
	if err != nil || len(left) == 0 {
		return err
	}
	x.turn.Leave()
	h.gather(ctx, &job{traceID: x.traceID, targets: x.plan.targets, left: left, places: places, do: op.decide}, x.decisions, grace)
	if slices.ContainsFunc(x.decisions, func(d decision) bool { return !d.decided() }) {
		x.late = lateCause(ctx)
		return nil // the answer is short
	}
	return x.turn.Enter(ctx)
}

// recallAll decides the known targets and returns the indexes of the others.
func (h *handler) recallAll(ctx context.Context, op *operation, x *exchange, workBy time.Time) (left []int, err error) {
	recallBy := x.began.Add(recallFor)
	if workBy.Before(recallBy) {
		recallBy = workBy
	}
	for i := range x.decisions {
		// The first target is always recalled: reading the clock takes as long.
		if op.recall != nil && (i == 0 || time.Now().Before(recallBy)) {
			if i > 0 {
				if err := x.turn.Yield(ctx); err != nil {
					return nil, err
				}
			}
			if d, known := h.recovering(ctx, x.traceID, x.plan.targets[i], op.recall); known {
				x.decisions[i] = d
				continue
			}
		}
		left = append(left, i)
	}
	return left, nil
}

// read returns the keys of a request, which must arrive by the given time.
func (h *handler) read(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer, by time.Time) ([]string, *refusal) {
	control := http.NewResponseController(w)
	// The ResponseWriters of tests have no deadlines.
	bounded := control.SetReadDeadline(by) == nil
	keys, refused := readKeys(w, r, buffer)
	if bounded && refused == nil {
		// net/http keeps reading to detect that the client has left, and would interpret an expired
		// deadline as that.
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			return nil, refuse(http.StatusBadRequest, "the connection is closed")
		}
	}
	return keys, refused
}

// newTraceID returns 16 random bytes in hexadecimal, which identify a request in logs and
// answers.
func newTraceID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // crypto/rand ends the process instead of failing
	return hex.EncodeToString(id[:])
}
