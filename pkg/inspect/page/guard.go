package page

import (
	"crypto/subtle"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// guard decides which requests are allowed. It refuses web sites in the same browser, under
// any name for loopback, and pages on other ports.
type guard struct {
	host    string // as browsers send it: 127.0.0.1:PORT, without the port 80
	cookie  string // its name
	session string // its value
	// below is the path prefix of every view. Browsers send cookies to all ports of a host: the
	// cookie is bound to this path, which no other program on loopback can guess.
	below string
}

// noSession says how a browser gets a session.
const noSession = "This browser has no session. Use the address that landwaiter ui printed, once, or run landwaiter ui again."

// sessionPath matches the part of a path that is specific to a session.
var sessionPath = regexp.MustCompile(`^/s/[0-9a-f]{64}(/|$)`)

// within returns the request as views know it, and whether its path was below the session's.
func (g guard) within(r *http.Request) (*http.Request, bool) {
	path, below := strings.CutPrefix(r.URL.Path, g.below)
	if !below || !strings.HasPrefix(path, "/") {
		return r, false
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = path, ""
	return inner, true
}

// linked adds the session's path to the addresses of a document. A stranger's text never matches
// these prefixes, because templates escape quotes.
func (g guard) linked(document string) string {
	return strings.NewReplacer(`href="/`, `href="`+g.below+`/`, `src="/`, `src="`+g.below+`/`, `action="/`, `action="`+g.below+`/`).
		Replace(document)
}

// refuses returns the status and the sentence with which a request is refused, 0 if it is allowed.
// Inside says that the request was below the path of the session.
func (g guard) refuses(r *http.Request, inside bool) (status int, why string) {
	switch {
	case r.Host != g.host:
		return http.StatusMisdirectedRequest, "This address does not belong to this page."
	case r.Method != http.MethodGet && r.Method != http.MethodHead && (r.Method != http.MethodPost || r.URL.Path != pathWhatIf):
		return http.StatusMethodNotAllowed, "This page only reads."
	case !g.sameOrigin(r):
		return http.StatusForbidden, "Another page asked for this. Open the address yourself."
	case r.URL.Path == pathOpen && !inside:
	case !inside || !g.knows(r):
		return http.StatusForbidden, noSession
	}
	return 0, ""
}

// sameOrigin reports whether the request comes from the page itself, or from a person's link
// outside of any page. Forms of a page without a referrer send "null" as their origin.
func (g guard) sameOrigin(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if len(r.Header.Values("Sec-Fetch-Site")) > 1 || len(r.Header.Values("Origin")) > 1 {
		return false
	}
	ours := origin == "http://"+g.host
	if r.Method == http.MethodPost {
		return site == "same-origin" && (ours || origin == "null" || origin == "") || site == "" && ours
	}
	return (site == "" || site == "same-origin" || site == "none") && (origin == "" || ours)
}

// knows reports whether the request has the cookie of the session.
func (g guard) knows(r *http.Request) bool {
	// Other programs on loopback may have set one of the same name.
	return slices.ContainsFunc(r.CookiesNamed(g.cookie), func(c *http.Cookie) bool { return same(c.Value, g.session) })
}

func same(a, b string) bool { return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// setHeaders isolates the page: no other origin may read, frame or script it.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// localPath returns a given address of this page, without the session's path and without
// anything that could lead elsewhere: "/" for all others.
func localPath(address string) string {
	if at := sessionPath.FindString(address); at != "" {
		address = "/" + strings.TrimPrefix(address, at)
	}
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") || strings.ContainsAny(address, "\\\r\n\t") ||
		strings.HasPrefix(address, pathOpen) {
		return pathCluster
	}
	return address
}
