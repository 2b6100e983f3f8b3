package tracing_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/pkg/server/tracing"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

const traceID = "0af7651916cd43dd8448eb211c80319c"

const someDigest = digest.Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

// began is when the requests of these tests arrive.
func began() time.Time { return time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC) }

// denied is a request about one image that is denied, one that was in memory, one that
// is the first again, and a key that is none.
func denied(t *testing.T) provider.Observation {
	t.Helper()
	ref, err := image.Parse("registry.example.com/secret-project/app:v1")
	require.NoError(t, err)
	at := began()
	cold := &verify.Result{Namespace: "team-a", Reference: ref.WithDigest(someDigest), Digest: someDigest,
		Verdict: judged.As(policy.Denied,
			policy.Verdict{Reason: "secret-project/app is not signed", Policy: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "images"}}),
		Findings: make([]policy.Finding, 2),
		Stages: []verify.Stage{
			{Name: "resolve", Began: at.Add(2 * time.Millisecond), Duration: 3 * time.Millisecond, Detail: ref.String()},
			{Name: "check", Began: at.Add(6 * time.Millisecond), Duration: time.Millisecond, Detail: "Verifier team-a/release " + someDigest.String(),
				Verifier: policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"}},
		}}
	warm := &verify.Result{Namespace: "team-a", Reference: ref, Cached: true, Verdict: judged.As(policy.Allowed, policy.Verdict{})}
	key := "[team-a]registry.example.com/secret-project/app:v1"
	first := provider.KeyObservation{Key: key, Namespace: "team-a", Reference: ref, Answer: verify.AnswerDenied, Reason: cold.Verdict.Reason, Result: cold,
		Began: at.Add(time.Millisecond), Duration: 8 * time.Millisecond}
	again := first
	again.Repeated = true
	return provider.Observation{TraceID: traceID, Requested: at, Duration: 10 * time.Millisecond, Endpoint: "audit_verify", Operation: provider.OperationVerify,
		Source: provider.SourceAudit, Status: http.StatusOK, Outcome: provider.RequestAnswered, Asked: 5, Images: 2,
		Keys: []provider.KeyObservation{first, {Key: key, Namespace: "team-a", Reference: ref, Answer: verify.AnswerAllowed, Result: warm}, again,
			{Key: "[secret-project", Answer: verify.AnswerInvalid, Reason: "the key [secret-project has a namespace tag without an end"}}}
}

func TestSpansArriveAsATreeUnderTheRequestsTraceID(t *testing.T) {
	for protocol, start := range map[string]func(*testing.T) *received{"grpc": overGRPC, "http/protobuf": overHTTP} {
		t.Run(protocol, func(t *testing.T) {
			r := start(t)
			t.Setenv("OTEL_SERVICE_NAME", "landwaiter-west")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=west")
			counted := prometheus.NewRegistry()
			tracer, end, log := started(t, func(o *tracing.Options) { o.Metrics = counted })
			tracer.Observe(t.Context(), denied(t))
			end()
			require.Len(t, r.spans(), 5, "the request, two images, two stages")
			for _, span := range r.spans() {
				require.Equal(t, traceID, hex.EncodeToString(span.TraceId))
			}
			described := fields(r.resources()[0].Resource.Attributes)
			require.Equal(t, "landwaiter-west", described["service.name"])
			require.Equal(t, "v9.9.9", described["service.version"])
			require.Equal(t, "west", described["k8s.cluster.name"])

			request, resolve, check := r.named(t, "audit_verify"), r.named(t, "resolve"), r.named(t, "check")
			require.Empty(t, request.ParentSpanId)
			require.Equal(t, spans.Span_SPAN_KIND_SERVER, request.Kind)
			require.Equal(t, []uint64{uint64(began().UnixNano()), uint64(began().Add(10 * time.Millisecond).UnixNano())},
				[]uint64{request.StartTimeUnixNano, request.EndTimeUnixNano})
			require.Equal(t,
				map[string]any{"landwaiter.source": "audit", "landwaiter.namespace": "team-a", "landwaiter.outcome": "answered", "http.response.status_code": int64(200),
					"landwaiter.keys": int64(5), "landwaiter.images": int64(2), "landwaiter.allowed": int64(1), "landwaiter.denied": int64(2), "landwaiter.invalid": int64(1)},
				fields(request.Attributes))
			images := map[any]*spans.Span{}
			for _, span := range r.spans() {
				if span.Name == "image" {
					require.Equal(t, request.SpanId, span.ParentSpanId)
					images[fields(span.Attributes)["landwaiter.verdict"]] = span
				}
			}
			cold, warm := images["denied"], images["allowed"]
			require.Equal(t,
				map[string]any{"landwaiter.namespace": "team-a", "landwaiter.verdict": "denied", "landwaiter.cached": false, "landwaiter.findings": int64(2),
					"landwaiter.policy": "VerificationPolicy team-a/images"}, fields(cold.Attributes))
			require.Equal(t, uint64(8*time.Millisecond), cold.EndTimeUnixNano-cold.StartTimeUnixNano)
			require.Equal(t, true, fields(warm.Attributes)["landwaiter.cached"])
			require.Equal(t, warm.StartTimeUnixNano, warm.EndTimeUnixNano)
			require.Equal(t, cold.SpanId, resolve.ParentSpanId)
			require.Equal(t, cold.SpanId, check.ParentSpanId)
			require.Equal(t, uint64(began().Add(2*time.Millisecond).UnixNano()), resolve.StartTimeUnixNano)
			require.Equal(t, uint64(3*time.Millisecond), resolve.EndTimeUnixNano-resolve.StartTimeUnixNano)
			require.Equal(t, map[string]any{"landwaiter.verifier": "Verifier team-a/release"}, fields(check.Attributes))
			require.NoError(t, testutil.GatherAndCompare(counted, strings.NewReader(counter("exported", 5)), "landwaiter_tracing_spans_total"))
			require.Empty(t, log.String())
		})
	}
}

func counter(outcome string, n int) string {
	text := "# HELP landwaiter_tracing_spans_total Spans of traces by outcome: exported, failed (the collector refused them or was not there), dropped (too " +
		"many waited).\n" +
		"# TYPE landwaiter_tracing_spans_total counter\n"
	for _, each := range []string{"dropped", "exported", "failed"} {
		count := 0
		if each == outcome {
			count = n
		}
		text += fmt.Sprintf("landwaiter_tracing_spans_total{outcome=%q} %d\n", each, count)
	}
	return text
}

func TestSpansNameNoImageUnlessAskedTo(t *testing.T) {
	for name, asked := range map[string]bool{"by default": false, "if asked to": true} {
		t.Run(name, func(t *testing.T) {
			r := overHTTP(t)
			tracer, end, _ := started(t, func(o *tracing.Options) { o.Images = asked })
			tracer.Observe(t.Context(), denied(t))
			end()
			var text strings.Builder
			for _, resource := range r.resources() {
				text.WriteString(resource.String())
			}
			for _, secret := range []string{"secret-project", "registry.example.com", someDigest.Encoded()} {
				require.Equal(t, asked, strings.Contains(text.String(), secret), secret)
			}
			require.NotContains(t, text.String(), "[secret-project", "text that is no image is never shown")
		})
	}
}

func TestNothingIsTracedUnlessAskedFor(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"no variable": {}, "only a protocol": {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		"disabled":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"},
		"none":      {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
		"empty":     {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
		"for logs":  {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://127.0.0.1:1"},
		"not valid": {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "zipkin"},
	} {
		tracer, err := tracing.New(t.Context(), (&logs{}).logger(), tracing.Options{Getenv: func(name string) string { return variables[name] }})
		require.NoError(t, err, name)
		require.Nil(t, tracer, name)
		require.NoError(t, tracer.Close(t.Context()), name)
	}
}

func TestRefusesVariablesThatItCannotFollow(t *testing.T) {
	for name, value := range map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:4317",
		"OTEL_EXPORTER_OTLP_ENDPOINT":    "10.0.0.1:4317",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere/ca.crt", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": "/nowhere/tls.key",
		"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "udp",
		"OTEL_TRACES_SAMPLER": "xray", "OTEL_TRACES_SAMPLER_ARG": "2", "OTEL_BSP_MAX_QUEUE_SIZE": "100000000", "OTEL_RESOURCE_ATTRIBUTES": "no pairs"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			t.Setenv(name, value)
			_, err := tracing.New(t.Context(), (&logs{}).logger(), tracing.Options{Getenv: os.Getenv})
			require.ErrorContains(t, err, name)
		})
	}
}

// The libraries would print such headers.
func TestHeadersThatCannotBeReadAreNotShown(t *testing.T) {
	for _, headers := range []string{"hunter2", "authorization=Bearer%zzhunter2", "a=b,hunter2", "hunter2 x=y"} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
		_, err := tracing.New(t.Context(), (&logs{}).logger(), tracing.Options{Getenv: os.Getenv})
		require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_HEADERS", headers)
		require.NotContains(t, err.Error(), "hunter2")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x, x-team=a=b,")
	_, end, _ := started(t, nil)
	end()
}

func TestSamplerOfTheVariablesDecides(t *testing.T) {
	for sampler, want := range map[string]int{"always_off": 0, "parentbased_always_on": 1, "": 1} {
		r := overHTTP(t)
		t.Setenv("OTEL_TRACES_SAMPLER", sampler)
		tracer, end, _ := started(t, nil)
		o := denied(t)
		o.Keys = nil
		tracer.Observe(t.Context(), o)
		end()
		require.Len(t, r.spans(), want, sampler)
	}
}

func TestRequestsThatFailAreMarked(t *testing.T) {
	r := overHTTP(t)
	tracer, end, _ := started(t, nil)
	o := denied(t)
	o.Outcome, o.Keys = provider.RequestOverloaded, nil
	tracer.Observe(t.Context(), o)
	end()
	require.Equal(t, spans.Status_STATUS_CODE_ERROR, r.named(t, "audit_verify").Status.Code)
	require.Equal(t, "overloaded", r.named(t, "audit_verify").Status.Message)
}

func TestOneRequestMakesABoundedNumberOfSpans(t *testing.T) {
	r := overGRPC(t)
	tracer, end, _ := started(t, nil)
	o := denied(t)
	image := o.Keys[0]
	result := *image.Result
	result.Stages = make([]verify.Stage, 100)
	for i := range result.Stages {
		result.Stages[i] = verify.Stage{Name: "check", Began: began()}
	}
	image.Result, o.Keys = &result, nil
	for range 512 {
		o.Keys = append(o.Keys, image)
	}
	tracer.Observe(t.Context(), o)
	end()
	require.Len(t, r.spans(), 256)
	require.Equal(t, int64(512*101-255), fields(r.named(t, "audit_verify").Attributes)["landwaiter.spans_left_out"])
}

// A collector that never answers holds up nothing: what does not fit is dropped.
func TestCollectorThatHangsDropsSpansAndHoldsUpNothing(t *testing.T) {
	hang := make(chan struct{})
	serveHTTP(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	counted := prometheus.NewRegistry()
	tracer, end, log := started(t, func(o *tracing.Options) { o.Metrics = counted })
	for range 100 {
		tracer.Observe(t.Context(), denied(t))
	}
	require.NoError(t, testutil.GatherAndCompare(counted, strings.NewReader(counter("dropped", 500-16)), "landwaiter_tracing_spans_total"))
	require.Empty(t, log.String())
	close(hang)
	end()
}

func TestCollectorThatRefusesIsLoggedOnce(t *testing.T) {
	serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no\nsuch tenant "+strings.Repeat("x", 5000), http.StatusBadRequest)
	}))
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer hush")
	counted := prometheus.NewRegistry()
	tracer, end, log := started(t, func(o *tracing.Options) { o.Metrics = counted })
	for range 10 {
		tracer.Observe(t.Context(), denied(t))
	}
	end()
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log)
	require.Contains(t, log.String(), "traces could not be sent")
	require.Contains(t, log.String(), "level=warning")
	require.Less(t, len(log.String()), 1000)
	require.NotContains(t, log.String(), "hush")
	require.NoError(t, testutil.GatherAndCompare(counted, strings.NewReader(counter("failed", 50)), "landwaiter_tracing_spans_total"))
}

func TestRequestWithoutATraceIDMakesNoSpan(t *testing.T) {
	r := overHTTP(t)
	tracer, end, _ := started(t, nil)
	for _, id := range []string{"", "x", strings.Repeat("0", 32)} {
		o := denied(t)
		o.TraceID = id
		tracer.Observe(t.Context(), o)
	}
	end()
	require.Empty(t, r.spans())
}
