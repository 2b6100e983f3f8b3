// Package tracing makes OpenTelemetry spans of answered requests and sends them to a
// collector, as the standard OTEL_ variables say. The trace ID of a request is the
// traceID of its denials and log lines.
//
// It refuses to cost a request anything: spans are made after the answer was sent,
// are bounded for each request, and are dropped and counted if the collector does not
// keep up. It refuses to name images unless it is asked to, and takes no trace from a
// client: whoever may ask could otherwise write into the traces of others, or have all
// of its own kept.
package tracing

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options configure a [Tracer]. The zero value names no images.
type Options struct {
	// Version is the version of the program.
	Version string
	// Images adds image names, digests and reasons to spans.
	Images bool
	// Metrics registers the counter of spans. It may be nil.
	Metrics prometheus.Registerer
}

// Tracer is a provider.Observer that sends spans. It is safe for concurrent use.
type Tracer struct {
	options  Options
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer, or nil if the variables ask for none: without an endpoint and
// without OTEL_TRACES_EXPORTER. An error names the variable that cannot be used. New
// waits for no collector; [Tracer.Close] ends it.
func New(ctx context.Context, log *logrus.Logger, options Options) (*Tracer, error) {
	s, err := readSettings()
	if err != nil || !s.enabled {
		return nil, err
	}
	var client sdktrace.SpanExporter
	if s.grpc {
		client, err = otlptracegrpc.New(ctx)
	} else {
		client, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("send traces as the OTEL_EXPORTER_OTLP variables say: %w", err)
	}
	// Later ones win: what the variables say goes before ours.
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "landwaiter"), attribute.String("service.version", options.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES, which must be key=value pairs with commas between them: %w", err)
	}
	g := &gate{limit: int64(s.queue), spans: newSpanCounter(options.Metrics)}
	batches := &exporter{next: client, gate: g, log: log, now: time.Now}
	g.batches = sdktrace.NewBatchSpanProcessor(batches, sdktrace.WithMaxQueueSize(s.queue))
	t := &Tracer{options: options, provider: sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(g), sdktrace.WithResource(described), sdktrace.WithIDGenerator(requestIDs{}))}
	t.tracer = t.provider.Tracer("github.com/landwaiter/landwaiter")
	return t, nil
}

// Close sends what is waiting until ctx ends. A nil Tracer has nothing.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

func newSpanCounter(registerer prometheus.Registerer) *prometheus.CounterVec {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "landwaiter_tracing_spans_total",
		Help: "Spans of traces by outcome: exported, failed (the collector refused them or was not there), dropped (too many waited)."}, []string{"outcome"})
	for _, outcome := range []string{"exported", "failed", "dropped"} {
		spans.WithLabelValues(outcome) // a rate needs the zero
	}
	if registerer != nil {
		registerer.MustRegister(spans)
	}
	return spans
}
