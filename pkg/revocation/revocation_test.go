package revocation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// server counts requests and answers them as a test says.
func server(t *testing.T, handler http.HandlerFunc) (address, host string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, strings.TrimPrefix(s.URL, "http://"), asked
}

func run(t *testing.T, options Options, now func() time.Time) *Ahead {
	t.Helper()
	a, err := New(options, now)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return a
}

func get(t *testing.T, a *Ahead, namespace verify.Namespace, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := a.For(namespace).RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(content), nil
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, time.Millisecond)
}

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
}

func TestAnswersFromMemoryAndNeverOnTheSpot(t *testing.T) {
	address, host, asked := server(t, hello)
	a := run(t, Options{Hosts: []string{host}}, time.Now)
	_, err := get(t, a, "team-a", address+"/list")
	require.ErrorIs(t, err, errPending)
	require.False(t, verify.IsPermanent(err))
	eventually(t, func() bool {
		content, err := get(t, a, "team-a", address+"/list")
		return err == nil && content == "GET /list "
	})
	require.EqualValues(t, 1, asked.Load())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/ocsp", strings.NewReader("question"))
	require.NoError(t, err)
	_, err = a.For("team-a").RoundTrip(request) //nolint:bodyclose // there is no response
	require.Error(t, err, "another question")
	_, err = get(t, a, "team-b", address+"/list")
	require.ErrorIs(t, err, errPending, "each namespace has its own answers")
}

func TestCommandsWaitForTheFirstAnswer(t *testing.T) {
	address, host, _ := server(t, hello)
	a := run(t, Options{Hosts: []string{host}, Wait: true}, time.Now)
	content, err := get(t, a, "", address+"/list")
	require.NoError(t, err)
	require.Equal(t, "GET /list ", content)
}

func TestAsksOnlyHostsThatAreListed(t *testing.T) {
	address, host, asked := server(t, hello)
	port := host[strings.LastIndex(host, ":")+1:]
	a := run(t, Options{Hosts: []string{"ocsp.example.com", "127.0.0.1", "127.0.0.2:" + port}, Wait: true}, time.Now)
	for _, wrong := range []string{
		address, "http://localhost:" + port, "http://ocsp.example.com:8080/", "ftp://ocsp.example.com/", "ldap://ocsp.example.com/",
		"http://user@ocsp.example.com/", "http://ocsp.example.com.evil.example/", "http://" + strings.Repeat("x", 3000) + "/",
		"file:///etc/passwd", "http:///x", "http://evil.example/ocsp.example.com",
	} {
		_, err := get(t, a, "team-a", wrong)
		require.True(t, verify.IsPermanent(err), "%.100s: %v", wrong, err)
	}
	require.Zero(t, asked.Load())
	for _, wrong := range []string{"", "http://x", "*.example.com", "a b", "x/y", "u@x", "x?y"} {
		_, err := New(Options{Hosts: []string{wrong}}, time.Now)
		require.Error(t, err, wrong)
	}
}

func TestFailuresAreNoAnswersAndAreTriedAgain(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"an error":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"a redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"not found":   http.NotFound,
		"no end":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"far too big": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxAnswer+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			var fail atomic.Bool
			fail.Store(true)
			address, host, asked := server(t, func(w http.ResponseWriter, r *http.Request) {
				if fail.Load() {
					handler(w, r)
					return
				}
				hello(w, r)
			})
			a := run(t, Options{Hosts: []string{host}, Wait: true}, time.Now)
			_, err := get(t, a, "team-a", address)
			require.Error(t, err)
			require.False(t, verify.IsPermanent(err))
			before := asked.Load()
			_, err = get(t, a, "team-a", address)
			require.Error(t, err)
			require.Equal(t, before, asked.Load(), "not at once")
			fail.Store(false)
			eventually(t, func() bool { _, err := get(t, a, "team-a", address); return err == nil })
		})
	}
}

func TestWhatIsOldIsFetchedAgainAndTheLastGoodAnswerStays(t *testing.T) {
	var state atomic.Value
	state.Store("first")
	address, host, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
		if state.Load() == "down" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, state.Load())
	})
	var late atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	a := run(t, Options{Hosts: []string{host}, Refresh: time.Hour, Wait: true}, now)
	answer := func() string {
		content, err := get(t, a, "team-a", address)
		require.NoError(t, err)
		return content
	}
	require.Equal(t, "first", answer())
	state.Store("second")
	a.renew()
	require.Equal(t, "first", answer(), "it is not old")
	late.Add(int64(61 * time.Minute))
	a.renew()
	eventually(t, func() bool { return answer() == "second" })
	state.Store("down")
	late.Add(int64(61 * time.Minute))
	a.renew()
	require.Equal(t, "second", answer())
	late.Add(int64(25 * time.Hour))
	a.renew()
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Zero(t, a.bytes, "nobody used it for a day")
}

func TestEachNamespaceHasAShare(t *testing.T) {
	address, host, _ := server(t, hello)
	a := run(t, Options{Hosts: []string{host}, Wait: true}, time.Now)
	_, err := get(t, a, "team-b", address+"/list")
	require.NoError(t, err)
	for i := range 3 * maxAnswers {
		_, err := get(t, a, "team-a", fmt.Sprintf("%s/%d", address, i))
		require.NoError(t, err)
	}
	count := func(namespace verify.Namespace) int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.shelves[namespace].answers)
	}
	require.Equal(t, maxAnswers, count("team-a"))
	require.Equal(t, 1, count("team-b"))
	a.Forget("team-a")
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Len(t, a.shelves, 1)
	require.Equal(t, len("GET /list "), a.bytes)
}

func TestWhoAsksTooMuchAtOnceIsToldToWait(t *testing.T) {
	hold := make(chan struct{})
	address, host, _ := server(t, func(http.ResponseWriter, *http.Request) { <-hold })
	defer close(hold)
	a := run(t, Options{Hosts: []string{host}}, time.Now)
	var last error
	for i := range maxQueued + 1 {
		_, last = get(t, a, "team-a", fmt.Sprintf("%s/%d", address, i))
		require.Error(t, last)
	}
	require.ErrorContains(t, last, "too many revocation answers")
	_, err := get(t, a, "team-b", address+"/list")
	require.ErrorIs(t, err, errPending)
}

func TestBytesAreBoundedPerNamespace(t *testing.T) {
	a, err := New(Options{Hosts: []string{"x"}}, time.Now)
	require.NoError(t, err)
	large := make([]byte, maxAnswer)
	for i := range 30 {
		for _, namespace := range []verify.Namespace{"team-a", verify.Namespace(fmt.Sprintf("team-%d", i))} {
			kept := a.want(namespace, question{address: fmt.Sprint(i)})
			require.NotNil(t, kept)
			<-a.queue
			a.store(kept, large, nil)
		}
		require.LessOrEqual(t, a.shelves["team-a"].bytes, maxBytes)
		require.LessOrEqual(t, a.bytes, maxBytesInAll)
	}
	sum := 0
	for _, s := range a.shelves {
		sum += s.bytes
	}
	require.Equal(t, sum, a.bytes)
}
