package load

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// waves holds requests back until no more come, and lets them go together: so
// many sequential round trips a verification takes as there are waves, however
// fast the machine is.
type waves struct {
	mu      sync.Mutex
	held    chan struct{} // closed to let the requests of one wave go
	arrived time.Time
	quiet   time.Duration // for which nothing must have come
	of      [][]string
}

func (w *waves) intercept(_ http.ResponseWriter, r *http.Request) bool {
	w.mu.Lock()
	if w.held == nil {
		w.held = make(chan struct{})
		w.of = append(w.of, nil)
		go w.release(w.held)
	}
	held := w.held
	w.arrived = time.Now()
	w.of[len(w.of)-1] = append(w.of[len(w.of)-1], r.Method+" "+r.URL.Path)
	w.mu.Unlock()
	<-held
	return false
}

func (w *waves) release(held chan struct{}) {
	for {
		w.mu.Lock()
		left := w.quiet - time.Since(w.arrived)
		if left <= 0 {
			w.held = nil
			close(held)
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		timer := time.NewTimer(left)
		<-timer.C
	}
}

// counted returns the requests of each wave so far.
func (w *waves) counted() [][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([][]string, len(w.of))
	for i, wave := range w.of {
		all[i] = slices.Clone(wave)
	}
	return all
}

// A digest is verified in at most three sequential round trips and a tag in four,
// whatever signs it; of many signatures each is fetched once, in parallel.
func TestVerificationTakesFewRequests(t *testing.T) {
	for _, f := range formats(t) {
		for _, signatures := range []int{1, 8} {
			for _, noReferrers := range []bool{false, true} {
				name := f.name
				if noReferrers {
					name += ", no referrers API"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel() // it waits most of the time
					w := newSignedImage(t, f, fixture.RegistryOptions{NoReferrers: noReferrers}, signatures)
					for _, tagged := range []bool{false, true} {
						most := 3
						ref := w.image.Reference
						if !tagged {
							ref.Tag = ""
						} else {
							ref.Digest, most = "", 4
						}
						// A slow machine counts more waves, never fewer.
						waves := w.verified(t, ref, 25*time.Millisecond)
						for try, quiet := 1, 50*time.Millisecond; len(waves) > most && try <= 12; try++ {
							waves = w.verified(t, ref, quiet)
							quiet = min(2*quiet, 800*time.Millisecond) // four waves within the time for an image
						}
						require.LessOrEqual(t, len(waves), most, waves)
						// Two lists, the subject, the tag and the other carrier; then a manifest
						// and a blob for each signature.
						requests := len(slices.Concat(waves...))
						require.LessOrEqual(t, requests, 5+2*signatures, waves)
						t.Logf("%d signatures, tag %v: %d requests in %d round trips", signatures, tagged, requests, len(waves))
					}
				})
			}
		}
	}
}

// verified returns the requests of one verification, by a service that knows nothing of the
// host.
func (w *signedImage) verified(t *testing.T, ref image.Reference, quiet time.Duration) [][]string {
	t.Helper()
	counting := &waves{quiet: quiet}
	verifier := newService(t, service.Options{}, w.objects)
	w.registry.SetIntercept(counting.intercept)
	result := verifier.Verify(t.Context(), "team-0", ref)
	w.registry.SetIntercept(nil)
	verifier.Close()
	require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
	return counting.counted()
}

// Connections are used again, also those whose answers nobody needs: to a registry with TLS a
// new one costs a round trip, and more processor time than a signature.
func TestConnectionsAreUsedForTheNextImage(t *testing.T) {
	for _, f := range formats(t) {
		t.Run(f.name, func(t *testing.T) {
			w := newSignedImage(t, f, fixture.RegistryOptions{}, 1)
			verifier := newService(t, cold(), w.objects)
			var mu sync.Mutex
			connections := map[string]bool{}
			w.registry.SetIntercept(func(_ http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				connections[r.RemoteAddr] = true
				return false
			})
			for range 20 {
				result := verifier.Verify(t.Context(), "team-0", w.image.Reference)
				require.Equal(t, policy.Allowed, result.Verdict.Outcome(), result.Verdict.Reason)
			}
			mu.Lock()
			defer mu.Unlock()
			// At once it asks for five things; while one is answered a sixth may be needed.
			require.Less(t, len(connections), 10)
		})
	}
}
