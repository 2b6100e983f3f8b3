//go:build !e2e && !nightly

package evidence

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// live says that commands run.
const live = false

// run does again what a command did.
func (c tool) run(t *testing.T, extra []string, args ...string) {
	t.Helper()
	done := next(t, c.spoken(extra, args))
	for name, text := range done.Files {
		require.NoError(t, os.WriteFile(filepath.Join(c.home, name), []byte(text), 0o600))
	}
	for _, m := range done.Manifests {
		found, _ := registries.Load(m.Host)
		registry, _ := found.(*fixture.Registry)
		require.NotNil(t, registry, m.Host)
		target, err := registry.Repository(t.Context(), m.Repository)
		require.NoError(t, err)
		for _, blob := range m.blobs(t) {
			exists, err := target.Blobs().Exists(t.Context(), blob)
			require.NoError(t, err)
			if !exists {
				require.NoError(t, target.Blobs().Push(t.Context(), blob, strings.NewReader(tapes[tapeOf(t)].Blobs[blob.Digest])))
			}
		}
		// Without the client's own care for referrers: the command's is on the tape.
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+registry.Address()+"/v2/"+m.Repository+"/manifests/"+m.Reference, strings.NewReader(m.Text))
		require.NoError(t, err)
		request.Header.Set("Content-Type", m.Type)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusCreated, response.StatusCode)
	}
}

// launch returns the addresses of a Sigstore instance that has ended.
func launch(t *testing.T) *services {
	t.Helper()
	const at = "http://127.0.0.1:1"
	file, done := filepath.Join(t.TempDir(), "file"), next(t, "launch")
	return &services{provider: done.Files["provider"], token: func(*testing.T, map[string]any) string { return "TOKEN" }, Sigstore: &cluster.Sigstore{
		Fulcio: at, Rekor: at, Timestamps: at + "/api/v1/timestamp", FulcioChain: file, RekorKey: file, TimestampChain: file}}
}

var (
	tapes  = map[string]*tape{} // by file
	played = map[string]int{}   // how many commands of a test
)

// next returns what the next command of a test did, which must be the command that asks.
func next(t *testing.T, command string) deed {
	t.Helper()
	const again = "record it: LANDWAITER_RECORD=1 make nightly PART=evidence"
	file := tapeOf(t)
	from := tapes[file]
	if from == nil {
		from = &tape{}
		text, err := os.ReadFile(file)
		require.NoError(t, err, again)
		require.NoError(t, json.Unmarshal(text, from), file)
		require.Equal(t, pinned(t), from.Tools, again)
		tapes[file] = from
	}
	n := played[t.Name()]
	if n == 0 {
		t.Cleanup(func() { delete(played, t.Name()) })
	}
	played[t.Name()]++
	require.Less(t, n, len(from.Commands[t.Name()]), "%s has no such command: %s; %s", file, command, again)
	done := from.Commands[t.Name()][n]
	require.Equal(t, done.Command, command, again)
	return done
}
