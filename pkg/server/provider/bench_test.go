package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/bare"
)

const benchKey = "[team-a]registry.example.com/team-a/app:v1"

// cachedVerdict is a verifier that knows every answer.
func cachedVerdict() Decider {
	findings := []policy.Finding{{Verifier: "release", Type: "Cosign", Result: policy.Valid, Signer: "sha256:00", Digest: someDigest.String(),
		ArtifactType: "application/vnd.dev.cosign.simplesigning.v1+json", Message: "signature verified by key sha256:00",
		Extensions: map[string]any{"signatures": []string{"a"}}}}
	known := verdict(policy.Allowed, "team-a", image.Reference{})
	known.Findings, known.Cached = findings, true
	return knowing{byRepository, func(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
		result := known
		result.Namespace, result.Reference = ns, ref.WithDigest(someDigest)
		return result, true
	}}
}

func benchmark(b *testing.B, w *testServer, address string, keepAlive bool) {
	client := w.caller(b, w.client)
	transport, _ := client.Transport.(*http.Transport)
	transport.DisableKeepAlives = !keepAlive
	transport.TLSClientConfig.ServerName = "127.0.0.1"
	body := requestBody(b, benchKey)
	b.ReportAllocs()
	before := processorTime(b)
	defer func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://"+address+"/v1/verify", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			response, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			if n, err := io.Copy(io.Discard, response.Body); err != nil || n < 100 || response.StatusCode != http.StatusOK {
				b.Errorf("status %d, %d bytes, %v", response.StatusCode, n, err)
			}
			_ = response.Body.Close()
		}
	})
}

// processorTime is what the process has used, client and server together: on a
// machine with other work it tells more than the time on the wall.
func processorTime(b *testing.B) int64 {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func bareServer(b *testing.B, w *testServer) string {
	h := newHandler(cachedVerdict(), pinning, quiet(), Options{}.withDefaults(), insecureAnyone)
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/v1/verify", bytes.NewReader(requestBody(b, benchKey)))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(answer, r)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{Handler: bare.Handler(answer.Body.Bytes()), ReadHeaderTimeout: readHeaderTimeout}
	go func() { _ = server.Serve(tls.NewListener(listener, w.server.tls.listenerConfig())) }()
	b.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

func BenchmarkWarmVerifyHTTPS(b *testing.B) {
	w := serve(b, cachedVerdict(), nil)
	b.Run("keepalive", func(b *testing.B) { benchmark(b, w, w.server.Address(), true) })
	b.Run("handshake", func(b *testing.B) { benchmark(b, w, w.server.Address(), false) })
}

func BenchmarkBareTLSHandler(b *testing.B) {
	w := prepare(b, cachedVerdict(), nil)
	address := bareServer(b, w)
	b.Run("keepalive", func(b *testing.B) { benchmark(b, w, address, true) })
	b.Run("handshake", func(b *testing.B) { benchmark(b, w, address, false) })
}

func BenchmarkHandler(b *testing.B) {
	h := newHandler(cachedVerdict(), pinning, quiet(), Options{}.withDefaults(), insecureAnyone)
	body := requestBody(b, benchKey)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/verify", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
