package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const output = `goos: linux
BenchmarkHTTPSWarm/provider/parallel-2   	   10000	    200 ns/op	  1000 p99-ns
BenchmarkHTTPSWarm/bare/parallel-2   	   10000	    100 ns/op	  900 p99-ns
BenchmarkHTTPSWarm/provider/handshake_each-2   	   10000	    100 ns/op
BenchmarkHTTPSWarm/bare/handshake_each-2   	   10000	    90 ns/op
BenchmarkEngineWarm/1_namespaces-2  100 3000 ns/op 1416 B/op 15 allocs/op
BenchmarkEngineWarm/1000_namespaces-2  100 3300 ns/op 1416 B/op 15 allocs/op
BenchmarkColdLatency/0s-2  100 1 ns/op 0.9 own-ms
BenchmarkColdLatency/5ms-2  100 1 ns/op 1.5 own-ms
BenchmarkColdLatency/20ms-2  100 1 ns/op 3.5 own-ms
BenchmarkChange-2  100 2000000 ns/op
BenchmarkManyKeys-2 44 24221883 ns/op 32.00 verifications
BenchmarkRedisWarm-2 4795 226901 ns/op 1.000 round-trips
BenchmarkFlood-2  1 8881053039 ns/op 33.81 ms-flooded-p99 25.27 ms-quiet-p99 1.338 ratio
BenchmarkFloodOfATenant-2  1 8881053039 ns/op 33.81 ms-flooded-p99 25.27 ms-quiet-p99 0.9 refused 1.338 ratio
BenchmarkVerifiedImages/allowed/images=1-2  100 1.25 over-yardstick
BenchmarkVerifiedImages/allowed/images=10-2  100 1.30 over-yardstick
BenchmarkVerifiedImages/allowed/images=50-2  100 1.20 over-yardstick
BenchmarkVerifiedImages/denied/images=1-2  100 1.40 over-yardstick
BenchmarkVerifiedImages/denied/images=10-2  100 1.35 over-yardstick
BenchmarkVerifiedImages/denied/images=50-2  100 1.60 over-yardstick
PASS
`

func TestFiguresAreRatiosOfWhatWasMeasured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	var out, echo bytes.Buffer
	require.NoError(t, run(strings.NewReader(output), &out, &echo, file, false))
	require.Equal(t, output, echo.String())
	require.Regexp(t, `throughput over a bare TLS handler, 10 connections +0\.50 +≥ 0\.8 +missed`, out.String())
	require.Regexp(t, `a handshake each +0\.90 +≥ 0\.8 +met`, out.String())
	require.Regexp(t, `registry at 20 ms +3\.50 ms +≤ 3 ms +missed`, out.String())
	require.Regexp(t, `compiled anew +2\.00 ms +≤ 50 ms +met`, out.String())
	require.Regexp(t, `in one request +32\.00 +≤ 32 +met`, out.String())
	require.Regexp(t, `allowed, the most of 1, 10 and 50 images +1\.30 +≤ 1\.5 +met`, out.String())
	require.Regexp(t, `denied, the most of 1, 10 and 50 images +1\.60 +≤ 1\.5 +missed`, out.String())
	require.Regexp(t, `only Redis has +1\.00 +≤ 1 +met`, out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var read []figure
	require.NoError(t, json.Unmarshal(text, &read))
	require.Len(t, read, len(figures()))
	require.ErrorContains(t, run(strings.NewReader(output), io.Discard, io.Discard, "", true), "4 figures were missed")
}

func TestWhatWasNotMeasuredIsAnError(t *testing.T) {
	require.ErrorIs(t, run(strings.NewReader("PASS\n"), io.Discard, io.Discard, "", false), errMissing)
	require.Error(t, run(strings.NewReader("BenchmarkChange-2 1 x ns/op\n"), io.Discard, io.Discard, "", false))
}
