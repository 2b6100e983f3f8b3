//go:build e2e

package admission

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// unanswered is what the API server says of a webhook that did not answer in time. Who
// reads it knows neither the image nor what to do.
const unanswered = "failed calling webhook"

// placesThatAsk are namespaces in which images are only verified, and pinned before that,
// with what the denial of each names.
func (w *world) placesThatAsk(t *testing.T) map[string]string {
	t.Helper()
	pinned := strings.Replace(w.namespace(t), "e2e-", "pinned-", 1) // no image of e2e-* is pinned
	w.makeNamespace(t, pinned)
	return map[string]string{w.namespace(t): "[verified-images]", pinned: "landwaiter-mutate"}
}

// The deadlines are one above the other: Landwaiter's, the Provider's, the webhook's. So
// who creates a pod reads what Landwaiter says of a registry that never answers.
func TestARegistryThatHangsIsNamedInTheDenial(t *testing.T) {
	w := installed(t)
	image, err := w.push(t.Context(), "hanging/app", w.platform)
	require.NoError(t, err)
	w.Registry.SetIntercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v2/hanging/") {
			return false
		}
		<-r.Context().Done()
		return true
	})
	t.Cleanup(func() { w.Registry.SetIntercept(nil) })
	for ns, names := range w.placesThatAsk(t) {
		err := w.create(t, ns, image)
		for _, said := range []string{names, image, "try again"} {
			require.ErrorContains(t, err, said)
		}
		require.NotContains(t, err.Error(), unanswered)
	}
}

// Even if Landwaiter itself hangs, Gatekeeper has time left to say so.
func TestALandwaiterThatHangsIsNamedInTheDenial(t *testing.T) {
	w := installed(t)
	image, err := w.push(t.Context(), "stopped/app", w.platform)
	require.NoError(t, err)
	places := w.placesThatAsk(t)
	pid := w.Current().PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume := func() error { return syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(func() { require.NoError(t, resume()) })
	for ns, names := range places {
		err := w.create(t, ns, image)
		require.ErrorContains(t, err, names)
		require.NotContains(t, err.Error(), unanswered)
	}
	require.NoError(t, resume())
	for ns := range places {
		w.admitted(t, ns, image)
	}
}
