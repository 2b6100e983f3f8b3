package tracing

import (
	"context"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// gate bounds the spans that wait for the collector. The SDK's processor also bounds them,
// but does not report dropped spans; so it never gets more than it has space for.
type gate struct {
	sdktrace.SpanProcessor // of batches
	limit                  int64
	waiting                atomic.Int64
	spans                  *prometheus.CounterVec // outcome
}

var _ sdktrace.SpanProcessor = (*gate)(nil)

// OnEnd passes a span on if there is space for it, and never waits.
func (g *gate) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return // the SDK sends none of these
	}
	if g.waiting.Add(1) > g.limit {
		g.waiting.Add(-1)
		g.spans.WithLabelValues("dropped").Inc()
		return
	}
	g.SpanProcessor.OnEnd(span)
}

// exporter sends batches. It handles failures itself: the SDK would print each of them.
type exporter struct {
	sdktrace.SpanExporter
	gate *gate
	log  *logrus.Logger

	warnings rate.Sometimes
	lost     atomic.Int64 // spans since the last warning
}

func newExporter(next sdktrace.SpanExporter, gate *gate, log *logrus.Logger) *exporter {
	return &exporter{SpanExporter: next, gate: gate, log: log, warnings: rate.Sometimes{Interval: warningInterval}}
}

var _ sdktrace.SpanExporter = (*exporter)(nil)

// ExportSpans sends a batch, and counts and logs it if that fails.
func (e *exporter) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, batch)
	e.gate.waiting.Add(-int64(len(batch)))
	if err == nil {
		e.gate.spans.WithLabelValues("exported").Add(float64(len(batch)))
		return nil
	}
	e.gate.spans.WithLabelValues("failed").Add(float64(len(batch)))
	e.lost.Add(int64(len(batch)))
	e.warnings.Do(func() {
		e.log.WithField("spans", e.lost.Swap(0)).Warn("traces could not be sent: " + short(err.Error()))
	})
	return nil
}

// short returns s on one line, cut to maxTextBytes of valid UTF-8.
func short(s string) string {
	if len(s) > maxTextBytes {
		s = strings.ToValidUTF8(s[:maxTextBytes], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
