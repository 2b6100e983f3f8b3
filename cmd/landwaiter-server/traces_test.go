package main

import (
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// collected is an OTLP collector over HTTP that keeps the names of spans by trace ID.
type collected struct {
	mu    sync.Mutex
	names map[string][]string
	text  strings.Builder
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &sent) != nil {
		http.Error(w, "not a trace", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(sent.String())
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				id := hex.EncodeToString(span.TraceId)
				c.names[id] = append(c.names[id], span.Name)
			}
		}
	}
}

// The last traces are sent when the server ends.
func TestTraceIDOfADenialFindsItsTraceWithEveryStage(t *testing.T) {
	c := &collected{names: map[string][]string{}}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	s := startServe(t)
	s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "")
	response, err := s.client.Ask(t.Context(), gatekeeper.VerifyPath, "[team-b]"+s.Registry.Host()+"/shared/app:v1")
	require.NoError(t, err)
	verdict, why := gatekeeper.Judge(response.Items[0])
	require.Equal(t, gatekeeper.Denied, verdict, why)
	value, _ := response.Items[0].Value.(map[string]any)
	traceID, _ := value["traceID"].(string)
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{32}$`), traceID)
	s.stop()
	require.Equal(t, program.ExitOK, <-s.ended, s.log.String())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range []string{"verify", "image", "resolve", "list", "decide"} {
		require.Contains(t, c.names[traceID], span)
	}
	require.Contains(t, slices.Concat(slices.Collect(maps.Values(c.names))...), "check", "of the image that was allowed")
	require.NotContains(t, c.text.String(), "shared/app")
	require.NotContains(t, c.text.String(), s.Registry.Host())
}

func TestServeRefusesVariablesOfTracesThatItCannotFollow(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	code, log := serveOnce(t, t.TempDir(), "127.0.0.1:0")
	require.Equal(t, program.ExitUsage, code)
	require.Contains(t, log, "OTEL_TRACES_EXPORTER")
}
