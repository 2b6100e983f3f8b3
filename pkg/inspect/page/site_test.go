package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

const testHost = "127.0.0.1:8080"

// fakeSource answers from fixed facts, and counts readings.
type fakeSource struct {
	status    live.Status
	statusErr error
	checked   Checked
	explained Explanation
	preview   func(namespace verify.Namespace, text string) (Preview, error)

	readings atomic.Int64
}

func (f *fakeSource) Status(_ context.Context, namespace verify.Namespace) (live.Status, error) {
	f.readings.Add(1)
	if f.statusErr != nil && namespace == verify.Cluster {
		return live.Status{}, f.statusErr
	}
	return f.status, nil
}

func (f *fakeSource) Check(context.Context) (Checked, error) { return f.checked, nil }

func (f *fakeSource) Explain(context.Context, verify.Namespace, string) (Explanation, error) {
	f.readings.Add(1)
	return f.explained, nil
}

func (f *fakeSource) Preview(_ context.Context, namespace verify.Namespace, text string) (Preview, error) {
	return f.preview(namespace, text)
}

// now is when the tests look.
func now() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

func siteOf(t *testing.T, source Source) *Site {
	t.Helper()
	s, err := New(t.Context(), testHost, source, About{Who: "ann", Where: "https://cluster.example.com"}, now)
	require.NoError(t, err)
	return s
}

// asked is a request of the browser with the session.
func asked(s *Site, method, address string, body io.Reader) *http.Request {
	r := httptest.NewRequest(method, "http://"+testHost+s.guard.below+address, body)
	r.AddCookie(&http.Cookie{Name: s.guard.cookie, Value: s.guard.session})
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+testHost)
	}
	return r
}

func answer(s *Site, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// shown returns what the browser gets at an address, once nothing is pending.
func shown(t *testing.T, s *Site, address string) string {
	t.Helper()
	var text string
	require.Eventually(t, func() bool {
		w := answer(s, asked(s, http.MethodGet, address, nil))
		text = w.Body.String()
		require.Less(t, w.Code, 500, text)
		return !strings.Contains(text, "data-pending")
	}, time.Minute, 5*time.Millisecond)
	return strings.ReplaceAll(text, s.guard.below, "")
}

// shop is a namespace whose facts have the given text in each place that strangers can fill.
func shop(text string) *fakeSource {
	ref := func(kind, name string) policy.ObjectRef {
		return policy.ObjectRef{Kind: kind, Namespace: "shop", Name: name}
	}
	cluster := policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "base" + text}
	n := live.NamespaceStatus{Namespace: "shop", Tenant: "team" + text, Reported: true,
		BreakGlass: &live.BreakGlass{State: live.BreakGlassOpen, Until: "2026-11-27T13:00:00Z", Reason: text},
		Contacts:   []live.Contact{{Of: policy.ObjectRef{Kind: "Tenant", Name: "team" + text}, Contact: "#team " + text}},
		Rules:      []live.Choice{{Kind: "VerificationPolicy", Level: "namespace", Applied: []policy.ObjectRef{ref("VerificationPolicy", "own")}, Why: "own" + text}},
		All: []live.Running{{Workload: "Deployment/web" + text, Container: "web", Image: "r.example.com/web:1" + text, Result: "fail", Since: "2026-11-27T10:00:00Z",
			Reason: "no signature " + text, Remediation: "sign " + text, Command: "cosign sign " + text, Contact: "#shop " + text, Signers: "sha256:cafe; " + text},
			{Workload: "Deployment/db", Image: "r.example.com/db:1", Result: "pass", Since: "2026-11-26T10:00:00Z", Reason: "signed by release",
				Signers: "sha256:beef; https://issuer.example.com ann@example.com"}},
		Undecided: []live.Undecided{{Registry: "silent.example.com" + text, Count: 12, First: "2026-11-27T11:00:00Z", Last: "2026-11-27T11:30:00Z",
			Image: "silent.example.com/app:1" + text, Reason: "did not answer " + text, Remediation: "ask " + text},
			{Registry: "back.example.com", Count: 1, First: "2026-11-27T11:00:00Z", Last: "2026-11-27T11:00:00Z", Answered: "2026-11-27T11:10:00Z", Over: true,
				Reason: "was away", Remediation: "never shown"}},
		Denied: []live.Denial{{Image: "r.example.com/denied:1" + text, Count: 3, Last: "2026-11-27T11:00:00Z", Reason: "unsigned " + text,
			Command: "cosign attest " + text, Contact: text, Workloads: []string{"Job/x" + text}, Note: text},
			{Image: "r.example.com/web:0", Count: 1, Last: "2026-11-26T11:00:00Z", Allowed: "2026-11-27T00:00:00Z"}},
		Resources: []live.Attention{{Source: ref("Verifier", "v"+text), Condition: "Ready", Reason: "Broken", Message: text}},
		Levels: []live.Level{
			{Name: "namespace", Namespace: "shop",
				Resources: []live.Placed{{Ref: ref("VerificationPolicy", "own"+text), Kind: "VerificationPolicy", Applies: true, Why: text}}},
			{Name: "cluster",
				Resources: []live.Placed{{Ref: cluster, Kind: "VerificationPolicy", Instead: "namespace", Why: "the namespace has its own VerificationPolicy" + text}}}}}
	found := policy.NewProof("sha256:signer"+text, "signed by the release workflow "+text,
		map[string]any{"issuer": "https://issuer.example.com" + text, "list": []string{text}}).Finding()
	found.Source, found.Digest, found.ArtifactType = ref("Verifier", "release"), digest.FromString("x").String(), "application/vnd.dev.sigstore.bundle.v0.3+json"
	denied := policy.NotDecided(ref("VerificationPolicy", "own"), "undecided "+text)
	denied.Remediation, denied.Command, denied.Contact, denied.More = "sign it "+text, "notation sign "+text, "#own "+text, 2
	denied.Others = []policy.Objection{{Policy: cluster, Reason: "base requires more " + text, Remediation: "attest it " + text, Command: "cosign attest " + text,
		Contact: "#base " + text}}
	result := verify.Result{Namespace: "shop", Verdict: denied, Findings: []policy.Finding{found, {Verifier: "other", Message: "nothing found " + text}},
		Looked: []verify.Looked{{Repository: "r.example.com/web" + text, Role: verify.RoleOrigin, Manifests: 2, Signatures: 1}},
		Stages: []verify.Stage{{Name: "resolve", Began: now(), Duration: time.Millisecond, Detail: text},
			{Name: "list", Began: now().Add(time.Millisecond), Duration: 3 * time.Millisecond, Detail: "r"}}}
	return &fakeSource{
		status: live.Status{Namespaces: []live.NamespaceStatus{n},
			Ends: []live.End{{Source: ref("Exception", "e"), At: now().Add(time.Hour), What: live.EndOfException, Why: text}}},
		checked: Checked{
			Findings:  []Finding{{ID: "NoReplicas", Severity: "error", Text: "no replica is ready " + text, Command: "kubectl rollout restart " + text, Down: true}},
			Unchecked: []string{"TrustEnds: " + text}, Actions: map[verify.Namespace]string{"shop": "deny"}},
		explained: Explanation{Result: result, Took: 5 * time.Millisecond, Text: "image " + text, Notes: []string{text}},
		preview: func(namespace verify.Namespace, given string) (Preview, error) {
			row := live.Row{Use: live.Use{Namespace: namespace, Image: "r.example.com/web:1" + text}, Before: verify.Result{Verdict: policy.Unverified(cluster, "x")},
				After: result}
			return Preview{Rows: []live.Row{row}, Totals: live.Totals([]live.Row{row}), Notes: []string{text, given}, Missing: []string{text}}, nil
		},
	}
}

// views are addresses of everything that can be looked at.
func views(text string) []string {
	return []string{"/", "/?team=" + url.QueryEscape("team"+text), "/namespaces/shop",
		"/image?" + url.Values{"namespace": {"shop"}, "image": {"r.example.com/web:1" + text}}.Encode(),
		"/search?" + url.Values{"q": {"web"}}.Encode(), "/search?" + url.Values{"q": {text}}.Encode(), "/whatif?" + url.Values{"namespace": {text}}.Encode()}
}

func previewed(s *Site, namespace, text string) *httptest.ResponseRecorder {
	return answer(s, asked(s, http.MethodPost, "/whatif", strings.NewReader(url.Values{"namespace": {namespace}, "text": {text}}.Encode())))
}

// A check is read less often than a status, so that a view must not show findings under the time of the status.
func TestFindingsHaveTheTimeOfTheirOwnCheck(t *testing.T) {
	s := siteOf(t, shop(""))
	const at = "2026-11-28 11:59:00 UTC"
	answer(s, asked(s, http.MethodGet, "/", nil)) // reads everything
	s.check.mu.Lock()
	s.check.at = now().Add(-time.Minute)
	s.check.took = time.Hour // it stays
	s.check.mu.Unlock()
	for address, want := range map[string]string{"/": `Checked at <span id="checked-at">` + at, "/namespaces/shop": "(checked at " + at + ")"} {
		body := answer(s, asked(s, http.MethodGet, address, nil)).Body.String()
		require.Contains(t, body, want, address)
		require.Contains(t, body, `<span id="as-of">2026-11-28 12:00:00 UTC`, address)
	}
}

func TestTheViewsShowWhatTheCommandsPrint(t *testing.T) {
	s := siteOf(t, shop(""))
	for address, wants := range map[string][]string{
		"/": {"No replica answers:", "no replica is ready", "kubectl rollout restart", "Exception shop/e", "in 1 h", `href="/namespaces/shop"`, "deny 1",
			`new pods: <span class="badge undecided">undecided</span>`, `<span class="badge excepted">break-glass</span>`},
		"/namespaces/shop": {"No replica answers:", "VerificationPolicy shop/own applies.", "<strong>Break-glass:</strong> open: allows every image",
			"shadowed by the namespace", "the namespace has its own VerificationPolicy", "r.example.com/web:1", "no signature", "cosign sign",
			"allowed</span> by now, and runs since 2026-11-27T00:00:00Z", "3 times, last 2026-11-27T11:00:00Z", "signed by release",
			`<span class="badge denied">fails</span>`, "Failed verification in the last seven days", "Undecided in the last hour",
			"<bdi>images of silent.example.com</bdi>: 12 times since 2026-11-27T11:00:00Z, last 2026-11-27T11:30:00Z", "did not answer", "ask",
			"decided again since 2026-11-27T11:10:00Z",
			"Ask about Tenant team: <bdi>#team </bdi>", "<strong>Ask:</strong> <bdi>#shop </bdi>", `<strong>Command:</strong> <code class="copy">cosign sign </code>`,
			`<strong>To fix, if your build made it:</strong> <code class="copy">cosign attest </code>`,
			"<p><bdi>sha256:beef</bdi></p><p><bdi>https://issuer.example.com ann@example.com</bdi></p>"},
		"/image?namespace=shop&image=r.example.com%2Fweb%3A1": {"undecided", "signed by the release workflow", "https://issuer.example.com",
			"in <bdi>r.example.com/web</bdi>", "1 to check, 1 of another kind", "resolve", "sign it", "Where it runs",
			"What else denies it", "base requires more", "<bdi>#base </bdi>", `<code class="copy">cosign attest </code>`, `<code class="copy">notation sign </code>`,
			"And 2 more."},
		"/?team=nope":            {"No team of this name has a namespace that you can read."},
		"/search?q=WEB":          {"r.example.com/web:1", "r.example.com/web:0"},
		"/search?q=sho":          {"namespaces 1, images 0", `href="/namespaces/shop"`},
		"/whatif?namespace=shop": {`value="shop"`, "Nothing is applied."},
	} {
		text := shown(t, s, address)
		for _, want := range wants {
			require.Contains(t, text, want, address)
		}
	}
	text := previewed(s, "shop", "kind: VerificationPolicy").Body.String()
	require.Contains(t, text, "1 unknown")
	require.Contains(t, text, "There may be more images")
	require.NotContains(t, previewed(s, "shop", "a\r\nb").Body.String(), "U+000D", "browsers send both characters at the end of a line")
}

// hostileTexts are what strangers could write to have a page do more than show it. A script that runs
// sets window.hostile.
func hostileTexts() map[string]string {
	return map[string]string{
		"an element":          `"'><script>window.hostile=1</script><img src=x onerror=window.hostile=1><svg onload=window.hostile=1>`,
		"an address":          `javascript:window.hostile=1`,
		"the end of elements": `</title></textarea></svg></details></main><base href="https://evil.example.com/"><!--`,
		"a link":              `<a href="/open" href='/' src="/x" action="/y">`,
		"a template":          `{{.Base}}{{template "head"}}`,
		"control characters":  "\x00\x07\x1b[31m\x7f\u0085",
		"another direction":   "\u202egnp.exe\u2066\u200f",
		"hidden characters":   "\u200b\u00ad\ufeff\u2028\u2800",
		"invalid UTF-8":       "\xff\xfe",
		"100 KB":              strings.Repeat("<b>x\u202e", 12_500),
	}
}

func TestHostileTextStaysText(t *testing.T) {
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			s := siteOf(t, shop(text))
			inside := func(w *httptest.ResponseRecorder) string {
				return strings.ReplaceAll(w.Body.String(), s.guard.below, "")
			}
			documents := map[string]string{"POST /whatif": inside(previewed(s, "shop", text)),
				"/none": inside(answer(s, asked(s, http.MethodGet, "/namespaces/"+url.PathEscape(text), nil)))}
			for _, address := range views(text) {
				documents[address] = shown(t, s, address)
			}
			for address, document := range documents {
				requireHarmless(t, address, document)
				require.Less(t, len(document), 10<<20, address)
			}
		})
	}
}

// requireHarmless fails if a document has anything that templates do not have, or characters that
// nobody sees.
func requireHarmless(t *testing.T, address, document string) {
	t.Helper()
	for _, r := range document {
		if (!unicode.IsPrint(r) || r == blank) && r != '\n' && r != '\t' {
			t.Fatalf("%s has %U", address, r)
		}
	}
	tokens := html.NewTokenizer(strings.NewReader(document))
	scripts := 0
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			require.NotEqual(t, html.CommentToken, kind, address)
			continue
		}
		token := tokens.Token()
		require.NotContains(t, []string{"img", "iframe", "object", "embed", "base", "style", "b", "animate", "foreignobject"}, token.Data, address)
		for _, a := range token.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style", "%s: %s %s", address, token.Data, a.Key)
			if a.Key == "href" || a.Key == "src" || a.Key == "action" {
				require.True(t, a.Val == "" || a.Val == "#main" || strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//"), "%s: %s", address, a.Val)
			}
			if a.Key == "src" {
				require.Equal(t, "/assets/page.js", a.Val)
			}
		}
		if token.Data == "script" {
			scripts++
		}
	}
	require.Equal(t, 1, scripts, address)
}

func TestAForeignWebSiteCanNeitherReadNorCauseAnything(t *testing.T) {
	source := shop("")
	called := false
	source.preview = func(verify.Namespace, string) (Preview, error) { called = true; return Preview{}, nil }
	s := siteOf(t, source)
	form := url.Values{"namespace": {"shop"}, "text": {"x"}}.Encode()
	for name, c := range map[string]struct {
		method string
		path   string
		change func(*http.Request)
		status int
	}{
		"DNS rebinding":            {"GET", "/", func(r *http.Request) { r.Host = "evil.example.com:8080" }, http.StatusMisdirectedRequest},
		"another name of loopback": {"GET", "/", func(r *http.Request) { r.Host = "localhost:8080" }, http.StatusMisdirectedRequest},
		"another port":             {"GET", "/", func(r *http.Request) { r.Host = "127.0.0.1:8081" }, http.StatusMisdirectedRequest},
		"no session":               {"GET", "/", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"a wrong session":          {"GET", "/", func(r *http.Request) { r.Header.Set("Cookie", s.guard.cookie+"="+strings.Repeat("0", 64)) }, http.StatusForbidden},
		"an image of another site": {"GET", "/", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a page of another port":   {"GET", "/", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"fetch of another origin":  {"GET", "/", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") }, http.StatusForbidden},
		"a script of another site": {"GET", "/assets/page.js", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"no session for a style":   {"GET", "/assets/page.css", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"a form of another site": {"POST", "/whatif", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site"); r.Header.Set("Origin", "null") },
			http.StatusForbidden},
		"a form of another port": {"POST", "/whatif", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Origin", "http://127.0.0.1:9")
		}, http.StatusForbidden},
		"a form of an old browser": {"POST", "/whatif", func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://evil.example.com")
		}, http.StatusForbidden},
		"a form without any origin": {"POST", "/whatif", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Del("Origin") }, http.StatusForbidden},
		"a form with a hidden origin": {"POST", "/whatif", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
			http.StatusForbidden},
		"a form of a session elsewhere": {"POST", "/whatif", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"a form to a view":              {"POST", "/", func(*http.Request) {}, http.StatusMethodNotAllowed},
		"another path of a session":     {"GET", "/", func(r *http.Request) { r.URL.Path = "/s/" + strings.Repeat("0", 64) + "/" }, http.StatusForbidden},
		"no path of a session":          {"GET", "/", func(r *http.Request) { r.URL.Path = "/" }, http.StatusForbidden},
		"the token's page without one":  {"GET", "/", func(r *http.Request) { r.URL.Path = "/open" }, http.StatusForbidden},
		"another method":                {"DELETE", "/namespaces/shop", func(*http.Request) {}, http.StatusMethodNotAllowed},
		"a preflight":                   {"OPTIONS", "/whatif", func(*http.Request) {}, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			r := asked(s, c.method, c.path, strings.NewReader(form))
			c.change(r)
			w := answer(s, r)
			require.Equal(t, c.status, w.Code, w.Body)
			require.NotContains(t, w.Body.String(), "example.com")
			require.NotContains(t, w.Body.String(), "shop")
			require.NotContains(t, w.Body.String(), s.guard.below, "whoever knows the path can ask a browser for the cookie")
			for header := range w.Header() {
				require.NotContains(t, header, "Access-Control")
			}
		})
	}
	require.False(t, called)
	require.Equal(t, http.StatusOK, previewed(s, "shop", "x").Code, "the page's own form works")
	require.True(t, called)
}

func TestEachAnswerKeepsOtherOriginsOut(t *testing.T) {
	s := siteOf(t, shop(""))
	for _, address := range append(views(""), "/assets/page.js", "/assets/none", "/nowhere", "/open") {
		h := answer(s, asked(s, http.MethodGet, address, nil)).Header()
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
			require.Equal(t, want, h.Get(name), address)
		}
	}
}

func TestTheTokenOpensThePageOnceAndIsInNoOtherAddress(t *testing.T) {
	s := siteOf(t, shop(""))
	opened, err := url.Parse(s.Address("/namespaces/shop?page=2"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(opened.Query().Get("token")), 64, "256 bits")
	fresh := func(address string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "http://"+testHost+address, nil)
		r.Header.Set("Sec-Fetch-Site", "none")
		return r
	}
	require.Equal(t, http.StatusForbidden, answer(s, fresh("/open?token="+strings.Repeat("0", 64))).Code)
	require.Equal(t, http.StatusForbidden, answer(s, fresh("/open?token=")).Code)
	w := answer(s, fresh(opened.RequestURI()))
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, s.guard.below+"/namespaces/shop?page=2", w.Header().Get("Location"))
	cookie := w.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, s.guard.below+"/", cookie.Path, "other ports of loopback get the cookies of a host")
	for _, address := range views("") {
		text := shown(t, s, address)
		require.NotContains(t, text, opened.Query().Get("token"))
		require.NotContains(t, text, s.guard.session)
	}

	require.Equal(t, http.StatusForbidden, answer(s, fresh(opened.RequestURI())).Code, "a second browser")
	ended := fresh(s.guard.below + "/")
	ended.AddCookie(cookie)
	w = answer(s, ended)
	require.Equal(t, http.StatusForbidden, w.Code, "the first may have been somebody else's")
	require.Contains(t, w.Body.String(), "opened twice")
}

func TestACookieOfAnotherProgramLocksNobodyOut(t *testing.T) {
	s := siteOf(t, shop(""))
	r := httptest.NewRequest(http.MethodGet, "http://"+testHost+s.guard.below+"/", nil)
	r.AddCookie(&http.Cookie{Name: s.guard.cookie, Value: "x"})
	require.Equal(t, http.StatusForbidden, answer(s, r).Code)
	r.AddCookie(&http.Cookie{Name: s.guard.cookie, Value: s.guard.session})
	require.Equal(t, http.StatusOK, answer(s, r).Code)
}

func TestThePageLeadsNowhereElse(t *testing.T) {
	session := "/s/" + strings.Repeat("a", 64)
	for given, want := range map[string]string{session + "/namespaces/a?page=2": "/namespaces/a?page=2", session: "/", session + "//evil.example.com": "/",
		session + session + "/x": session + "/x", "/": "/", "/namespaces/a": "/namespaces/a", "//evil.example.com": "/", "/\\evil.example.com": "/",
		"https://evil.example.com": "/", "": "/", "/open?token=x": "/", "/a\r\nSet-Cookie: x": "/"} {
		require.Equal(t, want, localPath(given), given)
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for host, ok := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "0.0.0.0:1": false, "192.0.2.1:1": false, "localhost:1": false,
		"127.0.0.1": false} {
		_, err := New(t.Context(), host, shop(""), About{}, now)
		require.Equal(t, ok, err == nil, "%s: %v", host, err)
	}
}

// Browsers leave out the port of http.
func TestPort80IsServed(t *testing.T) {
	s, err := New(t.Context(), "127.0.0.1:80", shop(""), About{}, now)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(s.Address("/"), "http://127.0.0.1/open?"), s.Address("/"))
	r := asked(s, http.MethodGet, "/", nil)
	for host, status := range map[string]int{"127.0.0.1": http.StatusOK, "127.0.0.1:8080": http.StatusMisdirectedRequest,
		"evil.example.com": http.StatusMisdirectedRequest} {
		r.Host = host
		require.Equal(t, status, answer(s, r).Code, host)
	}
}

func TestAViewThatDidNotChangeIsNotSentAgain(t *testing.T) {
	s := siteOf(t, shop(""))
	shown(t, s, "/")
	first := answer(s, asked(s, http.MethodGet, "/", nil))
	r := asked(s, http.MethodGet, "/", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	w := answer(s, r)
	require.Equal(t, http.StatusNotModified, w.Code)
	require.Empty(t, w.Body.String())
	r = asked(s, http.MethodGet, "/namespaces/shop", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	require.Equal(t, http.StatusOK, answer(s, r).Code)
}

func TestViewsShareOneReading(t *testing.T) {
	source := shop("")
	s := siteOf(t, source)
	for range 50 {
		shown(t, s, "/")
		shown(t, s, "/namespaces/shop")
		shown(t, s, "/search?q=web")
	}
	require.EqualValues(t, 1, source.readings.Load())
}

func TestWithoutListingNamespacesThePersonsOwnIsShown(t *testing.T) {
	source := shop("")
	source.statusErr = live.MissingError{Right: live.Right{Verb: "list", Resource: corev1.Resource("namespaces")}}
	s := siteOf(t, source)
	s.Namespace = "shop"
	require.Contains(t, shown(t, s, "/"), "You cannot list namespaces, so this view has only")
	require.Contains(t, shown(t, s, "/"), "landwaiter ui --namespace NAME")
	require.Contains(t, shown(t, s, "/"), `href="/namespaces/shop"`)
	require.Contains(t, shown(t, s, "/"), "you cannot list")
	require.Contains(t, shown(t, s, "/namespaces/shop"), "r.example.com/web:1")
	s.Namespace = verify.Cluster
	require.Contains(t, shown(t, s, "/"), "/namespaces/NAME")
}

func TestAnAPIServerThatDoesNotAnswerIsNamedOnThePage(t *testing.T) {
	source := shop("")
	source.statusErr = errors.New("connection refused <b>")
	s := siteOf(t, source)
	text := shown(t, s, "/")
	require.Contains(t, text, "connection refused &lt;b&gt;")
	require.Contains(t, text, `role="alert"`)
}

func TestAWhatIfIsBounded(t *testing.T) {
	s := siteOf(t, shop(""))
	require.Equal(t, http.StatusBadRequest, previewed(s, "Not a namespace", "x").Code)
	require.Equal(t, http.StatusBadRequest, previewed(s, "shop", " ").Code)
	require.Equal(t, http.StatusRequestEntityTooLarge, previewed(s, "shop", strings.Repeat("x", maxPaste+1)).Code)
	require.Equal(t, http.StatusBadRequest, previewed(s, "shop", strings.Repeat("x", maxForm)).Code)
	s.whatIf <- struct{}{}
	require.Equal(t, http.StatusServiceUnavailable, previewed(s, "shop", "x").Code)
}

func TestRequestsAtATimeAreBounded(t *testing.T) {
	s := siteOf(t, shop(""))
	for range maxRequests {
		s.slots <- struct{}{}
	}
	require.Equal(t, http.StatusServiceUnavailable, answer(s, asked(s, http.MethodGet, "/", nil)).Code)
	for range maxRequests {
		<-s.slots
	}
	require.Equal(t, http.StatusOK, answer(s, asked(s, http.MethodGet, "/", nil)).Code)
}

func TestFewExplanationsAreKept(t *testing.T) {
	s := siteOf(t, shop(""))
	for i := range 3 * maxKept {
		s.explain.of(fmt.Sprintf("shop image-%d", i))
	}
	require.Len(t, s.explain.facts, maxKept)
	require.Len(t, s.explain.order, maxKept)
}

// processorTime is what the process has used. Unlike a clock, it does not count what other processes do.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A cluster of 1,000 namespaces with 10,000 containers.
func TestAViewOfALargeClusterIsQuickAndShort(t *testing.T) {
	small := shop("").status.Namespaces[0]
	source := shop("")
	source.status.Namespaces = nil
	for i := range 1000 {
		n := small
		n.Namespace, n.Tenant, n.All = verify.Namespace(fmt.Sprintf("ns-%d", i)), fmt.Sprintf("team-%d", i%50), nil
		for j := range 10 {
			n.All = append(n.All,
				live.Running{Workload: "Deployment/web", Image: fmt.Sprintf("r.example.com/app-%d:1", j), Result: "pass", Reason: strings.Repeat("signed by release ", 10)})
		}
		source.status.Namespaces = append(source.status.Namespaces, n)
	}
	s := siteOf(t, source)
	shown(t, s, "/")
	for _, address := range []string{"/", "/?page=5", "/namespaces/ns-7", "/search?q=app", "/search?q=ns-"} {
		took, text := time.Hour, ""
		for try := 0; try < 5 && took >= 500*time.Millisecond; try++ { // other work of the process counts, too
			before := processorTime(t)
			text = shown(t, s, address)
			took = processorTime(t) - before
		}
		require.Less(t, took, 500*time.Millisecond, address)
		require.Less(t, len(text), 512<<10, address)
	}
	require.Contains(t, shown(t, s, "/"), "1 to 100 of 1000")
	require.Contains(t, shown(t, s, "/?page=10"), "901 to 1000 of 1000")
	require.Contains(t, shown(t, s, "/?page=99"), "901 to 1000 of 1000")
}
