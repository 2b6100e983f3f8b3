package provider

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// handler answers requests. It is an http.Handler by itself, without a ServeMux,
// which would redirect paths that it finds unclean.
type handler struct {
	verifier Verifier
	resolver Resolver
	log      *logrus.Logger
	metrics  *metrics
	options  Options
	draining atomic.Bool   // connections should end with their next answer
	busy     atomic.Int64  // requests that are worked on
	workers  chan struct{} // one element for each running goroutine of labour
	buffers  sync.Pool     // of *bytes.Buffer, for requests and responses
	parse    parser

	// authorizeClient says why the client may not ask; nil: anyone may.
	authorizeClient func(*http.Request) error
}

func newHandler(verifier Verifier, resolver Resolver, log *logrus.Logger, options Options) *handler {
	return &handler{
		verifier: verifier, resolver: resolver, log: log, options: options,
		metrics: newMetrics(options.Metrics),
		workers: make(chan struct{}, maxWorkers), parse: remembering(),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// exchange is a request and what became of it, for the log and the metrics.
type exchange struct {
	began     time.Time
	traceID   string
	endpoint  endpoint
	asked     int // keys, repeated ones too
	plan      plan
	decisions []decision
	outcome   requestOutcome
}

// requestOutcome is what a request comes to, as logs and metrics call it.
type requestOutcome string

const (
	requestAnswered  requestOutcome = "answered"
	requestUndecided requestOutcome = "undecided"
	requestOverload  requestOutcome = "overload"
	requestForbidden requestOutcome = "forbidden"
	requestMalformed requestOutcome = "malformed"
	requestFailed    requestOutcome = "failed"
)

func outcomeOf(status int) requestOutcome {
	switch status {
	case http.StatusOK:
		return requestUndecided
	case http.StatusServiceUnavailable:
		return requestOverload
	case http.StatusForbidden:
		return requestForbidden
	case http.StatusInternalServerError:
		return requestFailed
	}
	return requestMalformed
}

// ServeHTTP answers every request with a well-formed ProviderResponse, because
// Gatekeeper reads the body whatever the status is. The status is 200 for every
// request that was understood, also if it could not be decided.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.metrics.inFlight.Inc()
	defer h.metrics.inFlight.Dec()
	x := &exchange{began: time.Now(), traceID: newTraceID(), outcome: requestAnswered}
	buffer, _ := h.buffers.Get().(*bytes.Buffer)
	defer h.recycle(buffer)

	status := http.StatusOK
	if refused := h.answer(w, r, buffer, x); refused != nil {
		status, x.outcome = refused.status, outcomeOf(refused.status)
		if err := encode(buffer, plain{systemError: refused.text + " (traceID " + x.traceID + ")"}); err != nil {
			h.log.WithField("traceID", x.traceID).WithError(err).Error("a system error could not be encoded")
		}
	}
	h.write(w, status, buffer.Bytes())
	h.record(x, status)
}

// recycle keeps a buffer for the next request, unless that would keep the
// memory of an unusually large one.
func (h *handler) recycle(buffer *bytes.Buffer) {
	const usual = 64 << 10
	if buffer.Cap() <= usual {
		buffer.Reset()
		h.buffers.Put(buffer)
	}
}

func (h *handler) write(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if h.draining.Load() || status == http.StatusForbidden {
		header.Set("Connection", "close")
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return // the client is gone: there is nobody to tell
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush() // the client need not wait for the log
	}
}

// answer encodes the items for a request into buffer, or says why there are none.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer, x *exchange) (refused *refusal) {
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			h.log.WithFields(logrus.Fields{"traceID": x.traceID, "stack": cut(string(debug.Stack()), maxStackBytes)}).Error("panic in the handler")
			refused = refuse(http.StatusInternalServerError, "internal error")
		}
	}()
	var err error
	if x.endpoint, err = parsePath(r.URL.EscapedPath()); err != nil {
		return refuse(http.StatusNotFound, "%v", err)
	}
	if h.authorizeClient != nil {
		if err := h.authorizeClient(r); err != nil {
			return refuse(http.StatusForbidden, "the client is not admitted: %v", err)
		}
	}
	answer, refused := h.decideAll(w, r, buffer, x)
	if refused != nil {
		return refused
	}
	if err := encode(buffer, answer); err != nil {
		if !errors.As(err, &refused) {
			refused = refuse(http.StatusInternalServerError, "internal error: the answer could not be written down")
		}
	}
	return refused
}

// decideAll reads the request and decides about all of its keys before the
// deadline.
func (h *handler) decideAll(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer, x *exchange) (answer, *refusal) {
	timeout := h.options.VerifyTimeout
	if x.endpoint.mutate {
		timeout = h.options.MutateTimeout
	}
	margin := timeout / marginParts
	workBy := x.began.Add(timeout - margin)

	keys, refused := h.read(w, r, buffer, workBy)
	if refused != nil {
		return nil, refused
	}
	// Only from here on is a place taken: a client that sends its request slowly
	// must not keep others out.
	defer h.busy.Add(-1)
	if h.busy.Add(1) > int64(h.options.MaxRequests) {
		return nil, refuse(http.StatusServiceUnavailable, "overloaded: %d requests are being worked on, try again", h.options.MaxRequests)
	}
	x.asked, x.plan = len(keys), x.endpoint.plan(keys, h.parse)

	h.decide(r.Context(), x, workBy, margin/2)
	for i := range x.decisions {
		if !x.decisions[i].known {
			return nil, refuse(http.StatusOK, "%s", doubt(x.plan, x.decisions))
		}
	}
	if x.endpoint.mutate {
		return plain{list: x.plan.mutated(x.decisions, h.options.DropTag)}, nil
	}
	return verified{plan: x.plan, decisions: x.decisions, traceID: x.traceID, now: x.began}, nil
}

// decide decides about all targets: what is known is, right here, and the rest is
// worked out beside the request until workBy and the grace after it.
func (h *handler) decide(ctx context.Context, x *exchange, workBy time.Time, grace time.Duration) {
	job := job{traceID: x.traceID, targets: x.plan.targets, do: h.verify}
	x.decisions = make([]decision, len(job.targets))
	if x.endpoint.mutate {
		job.do = h.resolve
	}
	recallBy := x.began.Add(recallFor)
	if workBy.Before(recallBy) {
		recallBy = workBy
	}
	for i := range job.targets {
		// The first is always recalled: reading the clock takes as long as that.
		if !x.endpoint.mutate && (i == 0 || time.Now().Before(recallBy)) {
			if d := h.guarded(ctx, x.traceID, job.targets[i], h.recall); d != nil {
				x.decisions[i] = *d
				continue
			}
		}
		job.left = append(job.left, i)
	}
	if len(job.left) > 0 {
		ctx, cancel := context.WithDeadline(ctx, workBy)
		defer cancel()
		h.gather(ctx, &job, x.decisions, grace)
	}
}

// read reads the keys of a request that must have arrived by a time.
func (h *handler) read(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer, by time.Time) ([]string, *refusal) {
	control := http.NewResponseController(w)
	// Not every ResponseWriter has deadlines; a server's has.
	bounded := control.SetReadDeadline(by) == nil
	keys, refused := readKeys(w, r, buffer)
	if bounded && refused == nil {
		// net/http goes on reading to notice a client that leaves; a deadline that
		// passes would look like that.
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			return nil, refuse(http.StatusBadRequest, "the connection is closed")
		}
	}
	return keys, refused
}

// newTraceID returns 16 random bytes in hexadecimal, which name a request in
// logs and answers.
func newTraceID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "" // never happens: crypto/rand ends the process instead
	}
	return hex.EncodeToString(id[:])
}
