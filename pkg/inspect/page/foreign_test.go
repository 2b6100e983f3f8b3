//go:build e2e

package page

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/browser"
)

// evil is the name of a web site that its owner has resolve to loopback.
const evil = "evil.example"

// heard is what a server was asked, and what it answered.
type heard struct {
	*http.Request
	status int
	said   string
}

// listening keeps what is asked of a server, and answers as next does.
type listening struct {
	next http.Handler

	mutex sync.Mutex
	all   []heard
}

func (l *listening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	l.next.ServeHTTP(answer, r)
	l.mutex.Lock()
	l.all = append(l.all, heard{r, answer.Code, answer.Body.String()})
	l.mutex.Unlock()
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the browser may have gone
}

func (l *listening) heard() []heard {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]heard(nil), l.all...)
}

// served serves a site for a real browser.
func served(t *testing.T, source Source) (*Site, *listening) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := New(t.Context(), listener.Addr().String(), source, About{Who: "ann", Where: "https://cluster.example.com"}, now)
	require.NoError(t, err)
	l := &listening{next: s}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: l}}
	server.Start()
	t.Cleanup(server.Close)
	return s, l
}

// foreign serves the web site of an attacker, and below /naive/ one that guards nothing.
func foreign(t *testing.T) (*httptest.Server, *listening) {
	t.Helper()
	site, err := os.ReadFile("testdata/foreign.html")
	require.NoError(t, err)
	l := &listening{next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch {
		case strings.HasSuffix(r.URL.Path, ".svg"):
			w.Header().Set("Content-Type", "image/svg+xml")
			_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`)
		case strings.HasSuffix(r.URL.Path, ".js"):
			w.Header().Set("Content-Type", "text/javascript")
		case strings.HasSuffix(r.URL.Path, ".css"):
			w.Header().Set("Content-Type", "text/css")
		case strings.HasSuffix(r.URL.Path, "events"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: x\n\n")
		case strings.HasPrefix(r.URL.Path, "/naive/"):
			_, _ = io.WriteString(w, "facts")
		default:
			_, _ = w.Write(site)
		}
	})}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return server, l
}

// attacks opens a foreign web site that tries everything at an address, and returns how that ended.
// It waits tenths of a second for frames and windows, which tell no other site that they stay empty.
func attacks(t *testing.T, b *browser.Browser, origin, at, tenths string) map[string]string {
	t.Helper()
	tab := b.Tab(t)
	defer tab.Close()
	require.Equal(t, http.StatusOK, tab.Open(origin+"/?"+url.Values{"at": {at}, "patience": {tenths}}.Encode()))
	var tried map[string]string
	require.NoError(t, json.Unmarshal([]byte(browser.Evaluate[string](tab, "attack()")), &tried))
	require.GreaterOrEqual(t, len(tried), 15)
	return tried
}

func TestAForeignWebSiteInTheSameBrowserReadsAndCausesNothing(t *testing.T) {
	source := shop("")
	var previews atomic.Int64
	source.preview = func(verify.Namespace, string) (Preview, error) { previews.Add(1); return Preview{}, nil }
	s, page := served(t, source)
	server, visited := foreign(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	b := browser.Start(t, browser.Options{Hosts: []string{evil}})
	person := b.Tab(t)
	require.Equal(t, http.StatusOK, person.Open(s.Address("/namespaces/shop")))
	require.Contains(t, person.Address(), s.guard.below+"/namespaces/shop")
	mine, readings := "http://"+s.guard.host+s.guard.below+"/", source.readings.Load()

	for way, how := range attacks(t, b, server.URL, server.URL+"/naive/", "600") {
		require.Equal(t, "read", how, "a site that guards nothing is not read by %s, so the attack proves nothing", way)
	}
	before := len(page.heard())
	// The attackers know even the path of the session, which they cannot.
	for name, origin := range map[string]string{"another port of loopback": server.URL, "another site": "http://" + evil + ":" + port} {
		for _, at := range []string{mine, "http://" + s.guard.host + "/"} {
			for way, how := range attacks(t, b, origin, at, "10") {
				require.Equal(t, "refused", how, "%s reads %s by %s", name, at, way)
			}
		}
	}
	asked := page.heard()[before:]
	ways := map[string]bool{}
	for _, r := range asked {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "same-origin" {
			continue // the person's own page updates
		}
		ways[r.Method+" "+r.Header.Get("Sec-Fetch-Dest")] = true
		require.GreaterOrEqual(t, r.status, 400, "%s %s", r.Method, r.URL)
		require.NotContains(t, r.said, "shop")
		require.NotContains(t, r.said, s.guard.below)
	}
	for _, way := range []string{"GET document", "POST document", "GET iframe", "POST iframe", "GET object", "GET image", "GET script", "GET style", "GET empty",
		"POST empty", "OPTIONS empty"} {
		require.True(t, ways[way], "%s was not tried: %v", way, ways)
	}

	t.Run("whatever name the attacker gives to loopback", func(t *testing.T) {
		tab := b.Tab(t)
		rebound := strings.Replace(mine, "127.0.0.1", evil, 1)
		require.Equal(t, http.StatusMisdirectedRequest, tab.Open(rebound))
		for _, method := range []string{"GET", "POST"} {
			require.Equal(t, float64(http.StatusMisdirectedRequest), browser.Evaluate[float64](tab, `fetch("whatif", {method: "`+method+`"}).then((r) => r.status)`))
		}
		require.NotContains(t, browser.Evaluate[string](tab, "document.documentElement.outerHTML"), "shop")
	})
	t.Run("no site learns the path of the session", func(t *testing.T) {
		to := server.URL + "/from-the-page"
		browser.Evaluate[struct{}](person, `{ const a = document.createElement("a"); a.href = "`+to+`"; document.body.append(a); a.click(); }`)
		person.Eventually(`location.href === "` + to + `"`)
		for _, r := range visited.heard() {
			require.NotContains(t, r.Referer(), s.guard.below)
			if strings.HasSuffix(r.URL.Path, "/from-the-page") {
				require.Empty(t, r.Referer())
			}
			require.NotContains(t, r.Header.Get("Cookie"), s.guard.session)
		}
	})
	require.Zero(t, previews.Load(), "no site causes a what-if")
	require.Equal(t, readings, source.readings.Load(), "no site causes a reading")

	// The session was there all the time, and the page's own form has an effect.
	require.Equal(t, http.StatusOK, person.Open(mine+"whatif?namespace=shop"))
	person.Fill("#text", "kind: VerificationPolicy")
	require.Equal(t, http.StatusOK, person.Click("main form button"))
	require.EqualValues(t, 1, previews.Load())
}
