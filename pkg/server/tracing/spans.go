package tracing

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/landwaiter/landwaiter/pkg/server/provider"
)

// requestIDs sets the trace ID of a span that begins a trace to the traceID of its request,
// which is in the context.
type requestIDs struct{}

var _ sdktrace.IDGenerator = requestIDs{}

type requestIDKey struct{}

// NewIDs returns the trace ID in ctx and a random span ID.
func (r requestIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(requestIDKey{}).(trace.TraceID)
	return id, r.NewSpanID(ctx, id)
}

// NewSpanID returns a random span ID.
func (requestIDs) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // crypto/rand ends the process instead of failing
	return id
}

// Observe creates the spans of a request. It never waits.
func (t *Tracer) Observe(_ context.Context, o provider.Observation) {
	id, err := trace.TraceIDFromHex(o.TraceID)
	if err != nil {
		return // it has no trace ID that could be looked for
	}
	// Observe does not use the request's own context: it does not read a client's traceparent,
	// and the context ends with the connection.
	ctx := context.WithValue(context.Background(), requestIDKey{}, id)
	ctx, span := t.tracer.Start(ctx, o.Endpoint, trace.WithTimestamp(o.Requested), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(requestAttributes(&o)...))
	if span.IsRecording() {
		left := maxSpans - 1
		for i := range o.Keys {
			if k := &o.Keys[i]; !k.Repeated && k.Reference.Host != "" { // else the key is malformed
				left -= t.image(ctx, &o, k, left) //nolint:contextcheck // a context of its own, as said above
			}
		}
		if left < 0 {
			span.SetAttributes(attribute.Int("landwaiter.spans_left_out", -left))
		}
	}
	if o.Outcome != provider.RequestAnswered {
		span.SetStatus(codes.Error, string(o.Outcome))
	}
	span.End(trace.WithTimestamp(o.Requested.Add(o.Duration)))
}

func requestAttributes(o *provider.Observation) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String("landwaiter.source", string(o.Source)),
		attribute.String("landwaiter.outcome", string(o.Outcome)), attribute.Int("http.response.status_code", o.Status),
		attribute.Int("landwaiter.keys", o.Asked), attribute.Int("landwaiter.images", o.Images),
	}
	if about := o.About(); about != "" {
		attributes = append(attributes, attribute.String("landwaiter.namespace", about))
	}
	counts := o.Counts()
	for _, answer := range slices.Sorted(maps.Keys(counts)) {
		attributes = append(attributes, attribute.Int("landwaiter."+string(answer), counts[answer]))
	}
	return attributes
}

// image creates the span of an image and the spans of its stages, at most left, and returns
// how many there are. The work on an image may outlast its request, which then has no stages.
func (t *Tracer) image(ctx context.Context, o *provider.Observation, k *provider.KeyObservation, left int) int {
	spans := 1
	if k.Result != nil {
		spans += len(k.Result.Stages)
	}
	if left < 1 {
		return spans
	}
	began := k.Began
	if began.IsZero() {
		began = o.Requested
	}
	ctx, span := t.tracer.Start(ctx, "image", trace.WithTimestamp(began), trace.WithAttributes(t.imageAttributes(k)...))
	if k.Result != nil {
		for i := range k.Result.Stages[:min(spans, left)-1] {
			s := &k.Result.Stages[i]
			stage := []attribute.KeyValue{}
			if s.Verifier.Name != "" {
				stage = append(stage, attribute.String("landwaiter.verifier", s.Verifier.String()))
			}
			if t.options.Images && s.Detail != "" {
				stage = append(stage, attribute.String("landwaiter.detail", short(s.Detail)))
			}
			_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Began), trace.WithAttributes(stage...))
			span.End(trace.WithTimestamp(s.Began.Add(s.Duration)))
		}
	}
	if k.Undecided() {
		span.SetStatus(codes.Error, string(k.Answer))
	}
	span.End(trace.WithTimestamp(began.Add(k.Duration)))
	return spans
}

func (t *Tracer) imageAttributes(k *provider.KeyObservation) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String("landwaiter.namespace", k.Namespace.Label()), attribute.String("landwaiter.verdict", string(k.Answer)),
	}
	if r := k.Result; r != nil {
		attributes = append(attributes, attribute.Bool("landwaiter.cached", r.Cached), attribute.Int("landwaiter.findings", len(r.Findings)))
		if r.Verdict.Policy.Name != "" {
			attributes = append(attributes, attribute.String("landwaiter.policy", r.Verdict.Policy.String()))
		}
		if t.options.Images && r.Digest != "" {
			attributes = append(attributes, attribute.String("landwaiter.digest", r.Digest.String()))
		}
	}
	if t.options.Images {
		attributes = append(attributes, attribute.String("landwaiter.image", short(k.Reference.String())),
			attribute.String("landwaiter.reason", short(k.Reason)))
	}
	return attributes
}
