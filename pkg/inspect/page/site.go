package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

//go:embed templates assets
var files embed.FS

// The addresses of the page.
const (
	pathCluster   = "/"
	pathOpen      = "/open"
	pathNamespace = "/namespaces/"
	pathImage     = "/image"
	pathSearch    = "/search"
	pathWhatIf    = "/whatif"
	pathAssets    = "/assets/"
)

// Site serves the page to one browser of one person.
type Site struct {
	About
	guard     guard
	source    Source
	now       func() time.Time
	templates *template.Template
	slots     chan struct{} // of requests
	whatIf    chan struct{} // one at a time

	mu     sync.Mutex
	token  string
	opened bool        // by the token
	ended  atomic.Bool // the token came twice

	all     *fact[live.Status]
	check   *fact[Checked]
	single  recentFacts[live.Status]
	explain recentFacts[Explanation]
}

// New returns a site that is served at an address of loopback, such as 127.0.0.1:8080, until ctx
// ends. It fails for any other address. Browsers leave out the port of http, 80.
func New(ctx context.Context, host string, source Source, about About, now func() time.Time) (*Site, error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil, fmt.Errorf("serve the page at %q: %w", host, err)
	}
	if ip := net.ParseIP(name); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("serve the page at %q: it is not an address of loopback", host)
	}
	templates, err := template.New("").Funcs(functions()).ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the templates of the page: %w", err)
	}
	s := &Site{About: about, source: source, now: now, templates: templates, slots: make(chan struct{}, maxRequests),
		whatIf: make(chan struct{}, 1),
		guard:  guard{host: strings.TrimSuffix(host, ":80"), cookie: "landwaiter-" + port, session: secret(), below: "/s/" + secret()},
		token:  secret()}
	// A registry that does not answer only delays explanations.
	readings, explaining := make(chan struct{}, maxReadings), make(chan struct{}, maxReadings)
	status := func(namespace verify.Namespace) *fact[live.Status] {
		return &fact[live.Status]{age: statusAge, now: now, slot: readings, base: ctx,
			read: func(ctx context.Context) (live.Status, error) { return source.Status(ctx, namespace) }}
	}
	s.all = status(verify.Cluster)
	s.check = &fact[Checked]{age: checkAge, now: now, slot: readings, base: ctx, read: source.Check}
	s.single = recentFacts[live.Status]{facts: map[string]*fact[live.Status]{}, make: func(name string) *fact[live.Status] {
		return status(verify.Namespace(name))
	}}
	s.explain = recentFacts[Explanation]{facts: map[string]*fact[Explanation]{}, make: func(name string) *fact[Explanation] {
		namespace, image, _ := strings.Cut(name, " ")
		return &fact[Explanation]{age: explainAge, now: now, slot: explaining, base: ctx,
			read: func(ctx context.Context) (Explanation, error) {
				return source.Explain(ctx, verify.Namespace(namespace), image)
			}}
	}}
	return s, nil
}

// secret returns 256 random bits.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails: see its documentation
	return hex.EncodeToString(b)
}

// Address returns the address that opens a view once: the first browser that requests it gets the
// session.
func (s *Site) Address(view string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := url.Values{"token": {s.token}}
	if to := localPath(view); to != pathCluster {
		query.Set("to", to)
	}
	return "http://" + s.guard.host + pathOpen + "?" + query.Encode()
}

// ServeHTTP answers one request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	r, inside := s.guard.within(r)
	if status, why := s.guard.refuses(r, inside); status != 0 {
		http.Error(w, why, status) // without the path of the session
		return
	}
	if s.ended.Load() && (inside || r.URL.Path != pathOpen) {
		http.Error(w, "This session has ended, because its address was opened twice. Run landwaiter ui again.", http.StatusForbidden)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		s.fail(w, r, http.StatusServiceUnavailable, "The page answers too many requests at the moment. Try again.")
		return
	}
	switch path := r.URL.Path; {
	case path == pathOpen && !inside:
		s.open(w, r)
	case path == pathCluster:
		s.show(w, r, s.clusterView(r))
	case strings.HasPrefix(path, pathNamespace):
		s.show(w, r, s.namespaceView(r, strings.TrimPrefix(path, pathNamespace)))
	case path == pathImage:
		s.show(w, r, s.imageView(r))
	case path == pathSearch:
		s.show(w, r, s.searchView(r))
	case path == pathWhatIf:
		s.show(w, r, s.whatIfView(w, r))
	case strings.HasPrefix(path, pathAssets):
		s.asset(w, r)
	default:
		s.fail(w, r, http.StatusNotFound, "There is no such view.")
	}
}

// open exchanges the token for the session, so that the browser's history does not contain the
// secret. While the browser starts, other users of the machine can read the token in its command
// line: if it is used twice, one of the two is not the person, and the session ends.
func (s *Site) open(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	known, again := r.Method == http.MethodGet && same(r.URL.Query().Get("token"), s.token), s.opened
	s.opened = s.opened || known
	s.mu.Unlock()
	if known && again {
		s.ended.Store(true)
	}
	if !known || again {
		http.Error(w, "This address was used already, or is not complete. If it was used already, its session has ended: somebody else may "+
			"have opened it. Run landwaiter ui again, on a shared machine with --no-browser.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.guard.cookie, Value: s.guard.session, Path: s.guard.below + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // loopback has no TLS
	w.Header().Set("Location", s.guard.below+localPath(r.URL.Query().Get("to")))
	w.WriteHeader(http.StatusSeeOther)
}

// asset serves a style sheet, a script or an icon.
func (s *Site) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	content, err := fs.ReadFile(files, name)
	if err != nil {
		s.fail(w, r, http.StatusNotFound, "There is no such file.")
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// view is a page that is not rendered yet.
type view struct {
	template string
	status   int // 0 means 200
	base     base
	model    any
}

// base is the part of every view.
type base struct {
	Title string
	// Path is the address to give to others, without the server and the token.
	Path string
	About
	AsOf string
	// Live says that the view updates by itself, and Pending that it waits for facts.
	Live, Pending bool
	// Trouble is why facts could not be read, or are old.
	Trouble []string
	Query   string
}

func (s *Site) base(r *http.Request, title string) base {
	return base{Title: title, Path: strings.ReplaceAll(r.URL.RequestURI(), "'", "%27"), About: s.About, Live: true}
}

// show writes a view, or only that it did not change.
func (s *Site) show(w http.ResponseWriter, r *http.Request, v view) {
	document, err := s.render(v)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, "The view could not be rendered.")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	if v.status == 0 && v.base.Live {
		h.Set("ETag", tag(document))
		if r.Header.Get("If-None-Match") == h.Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(document)) // the client has gone
	}
}

// tag identifies the content of a view, without the time at which it was read.
func tag(document string) string {
	_, main, _ := strings.Cut(document, "<main")
	main, _, _ = strings.Cut(main, "</main>")
	sum := sha256.Sum256([]byte(main))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// render returns a document without hidden characters.
func (s *Site) render(v view) (string, error) {
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, v.template, map[string]any{"Base": v.base, "View": v.model}); err != nil {
		return "", fmt.Errorf("render %s: %w", v.template, err)
	}
	return s.guard.linked(visible(b.String())), nil
}

// fail answers with a sentence, as a page without facts.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, status int, why string) {
	document, err := s.render(view{template: "fail.html", base: base{Title: http.StatusText(status), About: s.About}, model: why})
	if err != nil {
		document = why
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(document))
	}
}

// said returns the text of an error of a source.
func said(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the API server did not answer within %s", readTime)
	}
	return err.Error()
}

// asOf is the time of a reading, "" if there was none.
func asOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Serve answers at a listener until ctx ends.
func (s *Site) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: readTime + 30*time.Second,
		IdleTimeout:  2 * time.Minute, MaxHeaderBytes: 32 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	if err := server.Close(); err != nil {
		return fmt.Errorf("stop the page: %w", err)
	}
	return nil
}
