package provider

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// A certificate that comes from a Secret may come late, or by parts. Until it is
// whole nobody is served, whoever they are.
func TestWaitsForItsCertificatesAndServesNobodyBefore(t *testing.T) {
	late := &fakeTLS{}
	w := prepare(t, byRepository, func(o *Options) { o.TLS = late }).run(t)
	ready := func() int {
		response, err := http.Get("http://" + w.server.HealthAddress() + "/readyz")
		require.NoError(t, err)
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		return response.StatusCode
	}
	refused := func(what string) {
		require.Equal(t, http.StatusServiceUnavailable, ready(), what)
		_, err := w.send(t, w.caller(t, w.client), "/v1/verify", "r.example.com/a")
		require.Error(t, err, what)
		_, err = w.send(t, w.caller(t, nil), "/v1/verify", "r.example.com/a")
		require.Error(t, err, what)
	}
	refused("nothing is there")
	late.certificate.Store(w.tls.certificate.Load())
	refused("the client CA is missing: the system's CAs must not stand in for it")
	late.none.Store(true)
	refused("a source that has none any more admits nobody")
	late.none.Store(false)
	late.trust(w.authority)
	require.Equal(t, http.StatusOK, ready())
	response, err := w.send(t, w.caller(t, w.client), "/v1/verify", "r.example.com/a")
	require.NoError(t, err)
	require.Len(t, response.Items, 1)
	_, err = w.send(t, w.caller(t, nil), "/v1/verify", "r.example.com/a")
	require.Error(t, err)
}

func TestForgetsTheSeriesOfANamespace(t *testing.T) {
	w := serve(t, byRepository, nil)
	client := w.caller(t, w.client)
	for _, key := range []string{"[team-a]r.example.com/a", "[team-b]r.example.com/a"} {
		_, err := w.send(t, client, "/v1/verify", key)
		require.NoError(t, err)
	}
	m := w.server.handler.metrics
	require.Eventually(t, func() bool { return testutil.CollectAndCount(m.images) == 2 }, time.Minute, time.Millisecond)
	w.server.Forget("team-a")
	require.Equal(t, 1, testutil.CollectAndCount(m.images))
}
