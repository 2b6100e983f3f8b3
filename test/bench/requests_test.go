package bench

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// waves holds requests back until no more come, and lets them go together: so
// many sequential round trips a verification takes as there are waves, however
// fast the machine is.
type waves struct {
	mu      sync.Mutex
	held    chan struct{} // closed to let the requests of one wave go
	arrived time.Time
	of      [][]string
}

// quiet is how long nothing must have come; a slower machine would count more
// waves, never fewer.
const quiet = 150 * time.Millisecond

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
		left := quiet - time.Since(w.arrived)
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

func (w *waves) requests() int {
	n := 0
	for _, wave := range w.of {
		n += len(wave)
	}
	return n
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
					w := newFormatWorld(t, f, fixture.RegistryOptions{NoReferrers: noReferrers}, signatures)
					for _, tagged := range []bool{false, true} {
						counted := &waves{}
						client := registry.NewClient(registry.Options{}) // which knows nothing of the host
						snapshot, problems := compile.New(w.objects, nil, compile.Outside{Registry: client.For})
						require.Empty(t, problems)
						ref := w.image.Reference
						if !tagged {
							ref.Tag = ""
						} else {
							ref.Digest = ""
						}
						memory, err := cache.NewMemory(1<<24, time.Now)
						require.NoError(t, err)
						w.registry.SetIntercept(counted.intercept)
						result := verify.NewEngine(memory, time.Now, verify.Options{}).Verify(t.Context(), snapshot.For("team-0"), ref)
						w.registry.SetIntercept(nil)
						client.Close()
						require.Equal(t, policy.Allowed.String(), result.Verdict.Outcome.String(), result.Verdict.Reason)
						most := 3
						if tagged {
							most = 4
						}
						text := strings.Join(w.described(counted), "\n")
						require.LessOrEqual(t, len(counted.of), most, text)
						// Two lists, the subject, the tag and the other carrier; then a manifest
						// and a blob for each signature.
						require.LessOrEqual(t, counted.requests(), 5+2*signatures, text)
						t.Logf("%d signatures, tag %v: %d requests in %d round trips", signatures, tagged, counted.requests(), len(counted.of))
					}
				})
			}
		}
	}
}

func (w *formatWorld) described(counted *waves) []string {
	var lines []string
	for i, wave := range counted.of {
		lines = append(lines, string(rune('1'+i))+": "+strings.Join(wave, ", "))
	}
	return lines
}
