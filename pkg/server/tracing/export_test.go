package tracing

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// failing is an exporter that always fails.
type failing struct{ sdktrace.SpanExporter }

func (failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("the collector is down")
}

func TestCollectorThatStaysDownIsLoggedOnceAMinuteWithWhatWasLost(t *testing.T) {
	out := &bytes.Buffer{}
	log := logrus.New()
	log.SetOutput(out)
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(failing{}, &gate{spans: newSpanCounter(prometheus.NewRegistry())}, log)
		for range 120 { // two minutes
			require.NoError(t, e.ExportSpans(t.Context(), make([]sdktrace.ReadOnlySpan, 2)))
			time.Sleep(time.Second)
		}
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "spans=2")
	require.Contains(t, lines[1], "spans=120")
}
