package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/stretchr/testify/require"
)

func TestRefusesWhatIsNoRequestWithAWellFormedSystemError(t *testing.T) {
	good := string(requestBody(t, "r.example.com/a"))
	many := func(n int) string {
		return string(requestBody(t, strings.Split(strings.Repeat("r.example.com/a ", n), " ")[:n]...))
	}
	for name, c := range map[string]struct {
		method, path, contentType, body string
		status                          int
		want                            string
	}{
		"GET":                   {"GET", "", "", "", 405, "must be POST"},
		"HEAD":                  {"HEAD", "", "", "", 405, "must be POST"},
		"OPTIONS":               {"OPTIONS", "", "", "", 405, "must be POST"},
		"PUT":                   {"PUT", "", "", good, 405, "must be POST"},
		"unknown path":          {"", "/v2/verify", "", good, 404, "no such path"},
		"unclean path":          {"", "/v1//verify", "", good, 404, "no such path"},
		"namespace not a label": {"", "/v1/namespaces/Team-A/verify", "", good, 404, "DNS-1123"},
		"no content type":       {"", "", "-", good, 415, "application/json"},
		"text":                  {"", "", "text/plain", good, 415, "application/json"},
		"form":                  {"", "", "application/x-www-form-urlencoded", good, 415, "application/json"},
		"no body":               {"", "", "", "", 400, "not one JSON object"},
		"not JSON":              {"", "", "", "keys", 400, "not one JSON object"},
		"half":                  {"", "", "", good[:len(good)-2], 400, "not one JSON object"},
		"array":                 {"", "", "", "[" + good + "]", 400, "not one JSON object"},
		"trailing garbage":      {"", "", "", good + "x", 400, "not one JSON object"},
		"two requests":          {"", "", "", good + good, 400, "not one JSON object"},
		"null":                  {"", "", "", "null", 400, "apiVersion"},
		"no version":            {"", "", "", `{"kind":"ProviderRequest","request":{"keys":["a"]}}`, 400, "apiVersion"},
		"old version":           {"", "", "", strings.Replace(good, "v1beta1", "v1alpha1", 1), 400, "v1alpha1"},
		"no kind":               {"", "", "", strings.Replace(good, "ProviderRequest", "", 1), 400, "kind"},
		"kind of an answer":     {"", "", "", strings.Replace(good, "ProviderRequest", "ProviderResponse", 1), 400, "ProviderResponse"},
		"keys not a list":       {"", "", "", strings.Replace(good, `["r.example.com/a"]`, `"a"`, 1), 400, "not one JSON object"},
		"key not a string":      {"", "", "", strings.Replace(good, `"r.example.com/a"`, `{}`, 1), 400, "not one JSON object"},
		"2049 keys":             {"", "", "", many(2049), 413, "2049 images"},
		"body over 1 MiB":       {"", "", "", good + strings.Repeat(" ", maxBodyBytes), 413, "larger than 1048576"},
		"key over 4 KiB":        {"", "", "", string(requestBody(t, strings.Repeat("a", maxKeyBytes+1))), 413, "4097 bytes"},
		"deep nesting":          {"", "", "", strings.Repeat("[", 100_000), 400, "not one JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &calls{}
			h := testHandler(asked.decider(byRepository), asked.resolver(pinning), nil)
			r := httptest.NewRequest(or(c.method, "POST"), "/", strings.NewReader(c.body))
			r.URL.Path = or(c.path, "/v1/verify")
			if c.contentType != "-" {
				r.Header.Set("Content-Type", or(c.contentType, "application/json"))
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, c.status, w.Code)
			require.Contains(t, parseAnswer(t, w.Body.Bytes()).Response.SystemError, c.want)
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.Empty(t, w.Header().Get("Location"))
			require.Empty(t, asked.get())
		})
	}
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func TestAcceptsWhatGatekeeperMaySend(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for name, body := range map[string]string{
		"unknown fields": `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","more":1,` +
			`"request":{"keys":["r.example.com/a"],"new":{}}}`,
		"space around":            "\n " + string(requestBody(t, "r.example.com/a")) + "\n",
		"the largest key":         string(requestBody(t, "r.example.com/a")),
		"key written as \\u0072.": strings.Replace(string(requestBody(t, "r.example.com/a")), "r.", `\u0072.`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			response, status := post(t, h, "/v1/verify", []byte(body))
			require.Equal(t, http.StatusOK, status)
			require.Len(t, response.Response.Items, 1)
			require.True(t, succeeded(response.Response.Items[0]))
		})
	}
}

func TestAcceptsParametersOfTheContentType(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/v1/verify", bytes.NewReader(requestBody(t, "r.example.com/a")))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	testHandler(byRepository, pinning, nil).ServeHTTP(w, r)
	require.Len(t, parseAnswer(t, w.Body.Bytes()).Response.Items, 1)
}

func TestNoKeysGetNoItemsAndNoError(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	for _, path := range []string{"/v1/verify", "/v1/mutate", "/v1/namespaces/a/verify"} {
		for _, keys := range []string{``, `"keys":[]`, `"keys":null`} {
			response, status := post(t, h, path, []byte(`{"apiVersion":"`+apiVersion+`","kind":"ProviderRequest","request":{`+keys+`}}`))
			require.Equal(t, http.StatusOK, status)
			require.Empty(t, response.Response.Items)
			require.Empty(t, response.Response.SystemError)
		}
	}
}

func TestTellsWhyABodyDidNotArrive(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"too late":   {os.ErrDeadlineExceeded, 408},
		"broken off": {io.ErrUnexpectedEOF, 400},
		"too large":  {&http.MaxBytesError{Limit: 1}, 413},
		"otherwise":  {errors.New("connection reset"), 400},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/v1/verify", failingReader{c.err})
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			testHandler(byRepository, pinning, nil).ServeHTTP(w, r)
			require.Equal(t, c.status, w.Code)
			require.NotEmpty(t, parseAnswer(t, w.Body.Bytes()).Response.SystemError)
		})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// Whatever the body, the answer is well-formed JSON with one item for each
// distinct key, or a system error and no items, and never both.
// What is read without encoding/json is what that reads.
func FuzzUsualKeysAreThoseOfEncodingJSON(f *testing.F) {
	for _, keys := range [][]string{nil, {""}, {"r.example.com/a"}, {"[a]r.example.com/a", "[a]r.example.com/a", "x"}, {"é"}, {"a\"b"}, {"a\\", ","},
		{"<&>"}, {"\x7f"}} {
		f.Add(requestBody(f, keys...))
	}
	usual := string(requestBody(f, "a", "b"))
	for _, text := range []string{usual + "\n", usual + "\n\n", usual + "{}", strings.Replace(usual, `"b"`, `"b\u0041"`, 1),
		strings.Replace(usual, `a`, "\xff", 1), strings.Replace(usual, `","`, `", "`, 1), requestHead + requestTail} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		keys, usual := usualKeys(body)
		if !usual {
			return
		}
		var request externaldata.ProviderRequest
		require.NoError(t, json.Unmarshal(body, &request))
		require.Equal(t, request.Request.Keys, keys)
		require.Equal(t, apiVersion, request.APIVersion)
		require.Equal(t, externaldata.ProviderRequestKind, request.Kind)
	})
}

func TestKeysThatGatekeeperSendsAreReadTheShortWay(t *testing.T) {
	const key = "[team-a]registry.example.com/app:1@sha256:0"
	for _, text := range []string{string(requestBody(t, key)), string(requestBody(t, key)) + "\n"} {
		keys, usual := usualKeys([]byte(text))
		require.True(t, usual)
		require.Equal(t, []string{key}, keys)
	}
	keys, usual := usualKeys([]byte(requestHead + strings.Repeat(`","`, 100) + requestTail))
	require.True(t, usual)
	require.Len(t, keys, 101)
}

func FuzzRequest(f *testing.F) {
	paths := []string{"/v1/verify", "/v1/mutate", "/v1/namespaces/team-a/verify", "/ratify/gatekeeper/v1/mutate"}
	for i, keys := range [][]string{{"r.example.com/a"}, {"[a]r.example.com/a", "[a]r.example.com/a", "x"}, {"[", "", "\xff"},
		{"r.example.com/u", "r.example.com/d"}, {"r.example.com/p"}} {
		f.Add(requestBody(f, keys...), uint8(i))
	}
	f.Add([]byte(`{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","request":{"keys":["\ud800",null,"a"]},"request":{}}`), uint8(0))
	h := testHandler(byRepository, pinning, nil)
	f.Fuzz(func(t *testing.T, body []byte, which uint8) {
		response, _ := post(t, h, paths[int(which)%len(paths)], body)
		if response.Response.SystemError != "" {
			return
		}
		var request externaldata.ProviderRequest
		require.NoError(t, json.Unmarshal(body, &request))
		asked := map[string]bool{}
		for _, key := range request.Request.Keys {
			asked[key] = true
		}
		require.Len(t, response.Response.Items, len(asked))
		for key, item := range items(response.Response) {
			require.True(t, asked[key], "%q was not asked for", key)
			require.NotEqual(t, item.Error == "", item.Value == nil, "an item has a value or an error")
		}
	})
}
