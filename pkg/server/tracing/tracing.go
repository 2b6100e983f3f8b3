// Package tracing creates OpenTelemetry spans of answered requests and sends them to a
// collector, as configured by the standard OTEL_ variables. The trace ID of a request is the
// traceID of its denials and log lines.
//
// It must not cost a request anything: spans are created after the answer was sent, are
// bounded for each request, and are dropped and counted if the collector does not keep up. It
// only names images if configured to, and accepts no trace from a client: otherwise, every
// client could write into others' traces, or have all of its own kept.
package tracing

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

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
	// Getenv reads a variable, as [os.Getenv] does. The OpenTelemetry libraries read the
	// variables for the sampler, the exporter and the batches from the process itself.
	Getenv func(string) string
	// Metrics registers the counter of spans. It may be nil.
	Metrics prometheus.Registerer
}

// Tracer is a provider.Observer that sends spans. It is safe for concurrent use.
type Tracer struct {
	options  Options
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer, or nil if the variables disable tracing: without an endpoint and
// without OTEL_TRACES_EXPORTER. An error names the invalid variable. New does not wait for
// the collector; [Tracer.Close] ends it.
func New(ctx context.Context, log *logrus.Logger, options Options) (*Tracer, error) {
	s, err := readSettings(options.Getenv)
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
	// Later ones win: the variables precede ours.
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "landwaiter"), attribute.String("service.version", options.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES, which must be key=value pairs with commas between them: %w", err)
	}
	g := &gate{limit: int64(s.queue), spans: newSpanCounter(options.Metrics)}
	g.SpanProcessor = sdktrace.NewBatchSpanProcessor(newExporter(client, g, log), sdktrace.WithMaxQueueSize(s.queue))
	t := &Tracer{options: options, provider: sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(g), sdktrace.WithResource(described), sdktrace.WithIDGenerator(requestIDs{}))}
	t.tracer = t.provider.Tracer("github.com/landwaiter/landwaiter")
	return t, nil
}

// Close sends the waiting spans until ctx ends. A nil Tracer has none.
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
		Help: "Spans of traces by outcome: exported, failed (the collector refused them or was not there), dropped (too many waited)."},
		[]string{"outcome"})
	for _, outcome := range []string{"exported", "failed", "dropped"} {
		spans.WithLabelValues(outcome) // a rate needs the zero
	}
	if registerer != nil {
		registerer.MustRegister(spans)
	}
	return spans
}

// settings are the settings that the libraries leave to the program, from the variables at
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables.
type settings struct {
	enabled bool
	grpc    bool // the protocol is gRPC, else HTTP with protocol buffers
	queue   int  // spans
}

// environment reads a variable.
type environment func(string) string

// first returns the first variable that is set.
func (e environment) first(names ...string) (name, value string) {
	for _, name = range names {
		if value = strings.TrimSpace(e(name)); value != "" {
			return name, value
		}
	}
	return name, ""
}

func readSettings(getenv environment) (settings, error) {
	first := getenv.first
	if _, disabled := first("OTEL_SDK_DISABLED"); strings.EqualFold(disabled, "true") {
		return settings{}, nil
	}
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch name, exporter := first("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return settings{}, nil
	case "":
		if endpoint == "" {
			return settings{}, nil
		}
	case "otlp":
	default:
		return settings{}, fmt.Errorf("%s is %q, it must be otlp or none", name, exporter)
	}
	s := settings{enabled: true, queue: defaultQueue}
	switch name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "grpc":
		s.grpc = true
	case "", "http/protobuf": // the default of the specification
	default:
		return settings{}, fmt.Errorf("%s is %q, it must be grpc or http/protobuf", name, protocol)
	}
	switch name, sampler := first("OTEL_TRACES_SAMPLER"); sampler {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
	case "traceidratio", "parentbased_traceidratio":
		name, ratio := first("OTEL_TRACES_SAMPLER_ARG")
		if n, err := strconv.ParseFloat(ratio, 64); ratio != "" && (err != nil || !(n >= 0 && n <= 1)) {
			return settings{}, fmt.Errorf("%s is %q, it must be a number from 0 to 1", name, ratio)
		}
	default: // the SDK would sample everything
		return settings{},
			fmt.Errorf("%s is %q, it must be always_on, always_off, traceidratio, or one of them after parentbased_", name, sampler)
	}
	if name, size := first("OTEL_BSP_MAX_QUEUE_SIZE"); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 || n > maxQueue {
			return settings{}, fmt.Errorf("%s is %q, it must be a number from 1 to %d", name, size, maxQueue)
		}
		s.queue = n
	}
	return s, getenv.checkExporter()
}

// checkExporter refuses settings that the libraries would accept wrongly: they send to
// another address, without the headers, or with other CAs, print header values, and panic.
func (e environment) checkExporter() error {
	const traces, all = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
	if name, endpoint := e.first(traces+"ENDPOINT", all+"ENDPOINT"); endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s must be a URL like http://otel-collector.monitoring:4317", name)
		}
	}
	for _, name := range []string{traces + "HEADERS", all + "HEADERS"} {
		_, headers := e.first(name)
		for header := range strings.SplitSeq(headers, ",") {
			key, value, ok := strings.Cut(header, "=")
			if strings.TrimSpace(header) == "" {
				continue
			}
			if _, err := url.PathUnescape(value); !ok || err != nil || !isToken(strings.TrimSpace(key)) {
				return fmt.Errorf("%s must be name=value pairs with commas between them, values with percent signs as in URLs; it is not shown, "+
					"because headers may be secret", name)
			}
		}
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		if name, file := e.first(traces+name, all+name); file != "" {
			if _, err := os.ReadFile(file); err != nil { //nolint:gosec // whoever starts the program names it
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if name, size := e.first("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"); size != "" {
		if n, err := strconv.Atoi(size); err != nil || n < 1 || n > maxQueue {
			return fmt.Errorf("%s is %q, it must be a number from 1 to %d", name, size, maxQueue)
		}
	}
	return nil
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}
