package tracing_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/landwaiter/landwaiter/pkg/server/tracing"
)

// received is an OTLP collector that keeps what it gets, over gRPC and HTTP.
type received struct {
	collector.UnimplementedTraceServiceServer

	mu      sync.Mutex
	batches []*spans.ResourceSpans
}

// Export is the call of the protocol.
func (r *received) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, request.ResourceSpans...)
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP is the same call over HTTP.
func (r *received) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body := request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = plain
	}
	var sent collector.ExportTraceServiceRequest
	text, err := io.ReadAll(body)
	if err == nil {
		err = proto.Unmarshal(text, &sent)
	}
	if err != nil || request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprint("not a trace: ", err), http.StatusBadRequest)
		return
	}
	answer, err := r.Export(request.Context(), &sent)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text, _ = proto.Marshal(answer)
	_, _ = w.Write(text)
}

func (r *received) resources() []*spans.ResourceSpans {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batches
}

func (r *received) spans() []*spans.Span {
	var all []*spans.Span
	for _, resource := range r.resources() {
		for _, scope := range resource.ScopeSpans {
			all = append(all, scope.Spans...)
		}
	}
	return all
}

// named returns the only span of a name.
func (r *received) named(t *testing.T, name string) *spans.Span {
	t.Helper()
	var found []*spans.Span
	for _, span := range r.spans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// fields are attributes by their names.
func fields(attributes []*common.KeyValue) map[string]any {
	found := map[string]any{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			found[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			found[a.Key] = v.IntValue
		case *common.AnyValue_BoolValue:
			found[a.Key] = v.BoolValue
		default:
			found[a.Key] = v
		}
	}
	return found
}

// overGRPC and overHTTP start a collector, and set the variables that name it.
func overGRPC(t *testing.T) *received {
	t.Helper()
	r := &received{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	return r
}

func overHTTP(t *testing.T) *received {
	t.Helper()
	r := &received{}
	serveHTTP(t, r)
	return r
}

func serveHTTP(t *testing.T, handler http.Handler) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
}

// started returns a tracer as the variables of the test say, what ends it, and its log.
func started(t *testing.T, change func(*tracing.Options)) (tracer *tracing.Tracer, end func(), log *logs) {
	t.Helper()
	options, log := tracing.Options{Version: "v9.9.9"}, &logs{}
	if change != nil {
		change(&options)
	}
	tracer, err := tracing.New(t.Context(), log.logger(), options)
	require.NoError(t, err)
	require.NotNil(t, tracer)
	return tracer, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, tracer.Close(ctx))
	}, log
}

// logs is a log that a test reads.
type logs struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

func (l *logs) logger() *logrus.Logger {
	logger := logrus.New()
	logger.SetOutput(l)
	return logger
}
