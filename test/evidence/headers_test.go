//go:build !e2e && !nightly

package evidence

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// rewriting lets change edit each answer of the registry.
func (e *environment) rewriting(t *testing.T, change func(r *http.Request, answer *httptest.ResponseRecorder)) {
	t.Helper()
	const inner = "X-Inner"
	e.registry.SetIntercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get(inner) != "" {
			return false
		}
		request, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+e.registry.Address()+r.URL.RequestURI(), r.Body)
		if err != nil {
			return false
		}
		request.Header = r.Header.Clone()
		request.Header.Set(inner, "1")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return true
		}
		defer func() { _ = response.Body.Close() }() // it was read
		answer := httptest.NewRecorder()
		answer.Code = response.StatusCode
		for name, values := range response.Header {
			answer.Header()[name] = values
		}
		_, _ = answer.Body.ReadFrom(response.Body) // what is missing is noticed
		change(r, answer)
		if r.Method == http.MethodGet && answer.Header().Get("Content-Length") != "" {
			answer.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return true
	})
}

// Headers are what no hash covers: they must not decide how content is read whose hash is right, nor that evidence is
// absent which is there.
func TestNoHeaderOfARegistryHidesEvidence(t *testing.T) {
	type answer = *httptest.ResponseRecorder
	ok := func(change func(r *http.Request, a answer)) func(*http.Request, answer) {
		return func(r *http.Request, a answer) {
			if a.Code == http.StatusOK {
				change(r, a)
			}
		}
	}
	contentType := func(text string) func(*http.Request, answer) {
		return ok(func(_ *http.Request, a answer) {
			a.Header()["Content-Type"] = []string{text}
			if text == "" {
				a.Header()["Content-Type"] = nil // or net/http would find one
			}
		})
	}
	changes := map[string]func(*http.Request, answer){
		"as it is": func(*http.Request, answer) {},
		"a parameter": ok(func(_ *http.Request, a answer) {
			a.Header().Set("Content-Type", a.Header().Get("Content-Type")+"; charset=utf-8")
		}),
		"a parameter without a blank": ok(func(_ *http.Request, a answer) {
			a.Header().Set("Content-Type", a.Header().Get("Content-Type")+";charset=UTF-8")
		}),
		"in capitals": ok(func(_ *http.Request, a answer) {
			a.Header().Set("Content-Type", strings.ToUpper(a.Header().Get("Content-Type")))
		}),
		"JSON":                        contentType("application/json"),
		"JSON with a parameter":       contentType("application/json; charset=utf-8"),
		"text":                        contentType("text/plain; charset=utf-8"),
		"HTML":                        contentType("text/html"),
		"bytes":                       contentType("application/octet-stream"),
		"no type":                     contentType(""),
		"no type that can be read":    contentType("a/b/c;;=;"),
		"the type of a manifest":      contentType("application/vnd.docker.distribution.manifest.v2+json"),
		"the type of an old manifest": contentType("application/vnd.docker.distribution.manifest.v1+prettyjws"),
		"no digest":                   func(_ *http.Request, a answer) { a.Header().Del("Docker-Content-Digest") },
		"a digest of another hash": ok(func(_ *http.Request, a answer) {
			a.Header().Set("Docker-Content-Digest", "sha512:"+strings.Repeat("0", 128))
		}),
		"a digest that is none":          ok(func(_ *http.Request, a answer) { a.Header().Set("Docker-Content-Digest", "W/\"1\"") }),
		"no length":                      func(_ *http.Request, a answer) { a.Header().Del("Content-Length") },
		"a filter that nobody asked for": func(_ *http.Request, a answer) { a.Header().Set("OCI-Filters-Applied", "artifactType") },
		"HEAD is refused": func(r *http.Request, a answer) {
			if r.Method == http.MethodHead {
				a.Code = http.StatusMethodNotAllowed
			}
		},
		"HEAD is forbidden": func(r *http.Request, a answer) {
			if r.Method == http.MethodHead {
				a.Code = http.StatusForbidden
			}
		},
		"HEAD is a bad request": func(r *http.Request, a answer) {
			if r.Method == http.MethodHead {
				a.Code = http.StatusBadRequest
			}
		},
		"HEAD is not implemented": func(r *http.Request, a answer) {
			if r.Method == http.MethodHead {
				a.Code = http.StatusNotImplemented
			}
		},
		"compressed": ok(func(r *http.Request, a answer) {
			if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				var packed bytes.Buffer
				w := gzip.NewWriter(&packed)
				_, _ = w.Write(a.Body.Bytes())
				_ = w.Close()
				a.Body = &packed
				a.Header().Set("Content-Encoding", "gzip")
			}
		}),
		"a page of HTML where something is missing": func(_ *http.Request, a answer) {
			if a.Code == http.StatusNotFound {
				a.Header().Set("Content-Type", "text/html")
				a.Body = bytes.NewBufferString("<html><h1>404</h1></html>")
			}
		},
		"nothing where something is missing": func(_ *http.Request, a answer) {
			if a.Code == http.StatusNotFound {
				a.Body = &bytes.Buffer{}
				a.Header().Set("Content-Length", "0")
			}
		},
	}
	stored := map[string]struct {
		options fixture.RegistryOptions
		sign    func(*testing.T, *environment) fixture.Image
	}{
		"a signature tag":                {fixture.RegistryOptions{}, func(t *testing.T, e *environment) fixture.Image { return e.signed(t, "app", "a") }},
		"a bundle":                       {fixture.RegistryOptions{}, bundled},
		"a bundle where there is no API": {fixture.RegistryOptions{NoReferrers: true}, bundled},
	}
	for about, change := range changes {
		for how, c := range stored {
			t.Run(about+"/"+how, func(t *testing.T) {
				t.Parallel()
				e := newEnvironment(t, c.options)
				img := c.sign(t, e)
				e.rewriting(t, change)
				require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
				requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
				tagged := img.Reference
				tagged.Digest, tagged.Tag = "", "v1"
				requireOutcome(t, policy.Allowed, e.Verify(t.Context(), "team-a", tagged).Verdict)
			})
		}
	}
}

// What is in place of a list, or of a manifest, is neither a list without entries nor content that somebody changed.
func TestAPageOfSomebodyBetweenLeavesAnImageUndecided(t *testing.T) {
	page := func(at string, contentType, text string) func(*http.Request, *httptest.ResponseRecorder) {
		return func(r *http.Request, a *httptest.ResponseRecorder) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, at) {
				a.Code = http.StatusOK
				a.Header().Set("Content-Type", contentType)
				a.Header().Del("Docker-Content-Digest")
				a.Body = bytes.NewBufferString(text)
			}
		}
	}
	const html = "<html>Please log in</html>"
	index := "application/vnd.oci.image.index.v1+json"
	for name, c := range map[string]struct {
		api    bool
		change func(*http.Request, *httptest.ResponseRecorder)
	}{
		"HTML for the list":                {true, page("/referrers/", "text/html", html)},
		"HTML as the list":                 {true, page("/referrers/", index, html)},
		"an object for the list":           {true, page("/referrers/", "application/json", "{}")},
		"errors for the list":              {true, page("/referrers/", "application/json", `{"errors":[{"code":"UNAUTHORIZED"}]}`)},
		"null for the list":                {true, page("/referrers/", index, "null")},
		"nothing for the list":             {true, page("/referrers/", index, "")},
		"a manifest for the list":          {true, page("/referrers/", index, `{"schemaVersion":2,"layers":[]}`)},
		"HTML as the list of the tag":      {false, page("/manifests/sha256-", index, html)},
		"HTML in place of each manifest":   {true, page("/manifests/sha256:", "text/html", html)},
		"HTML as each manifest":            {true, page("/manifests/sha256:", "text/html; charset=utf-8", html)},
		"a page in place of each manifest": {true, page("/manifests/sha256:", "", html)},
		"a page of JSON for each manifest": {true, page("/manifests/sha256:", "application/json", `{"login":"https://sso.example.com"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{NoReferrers: !c.api})
			img := bundled(t, e)
			e.rewriting(t, c.change)
			require.Empty(t, e.apply(t, e.trusting(t, "team-a", "a"), e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, policy.Undecided, e.outcome(t, "team-a", img))
		})
	}
}

// bundled pushes an image with a bundle of the signer a.
func bundled(t *testing.T, e *environment) fixture.Image {
	t.Helper()
	img := e.signed(t, "app")
	_, err := e.registry.SignCosignBundle(t.Context(), img, e.signer(t, "a"), fixture.CosignOptions{})
	require.NoError(t, err)
	return img
}
