package isolation

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyDryRunsAndReadsOfHarmlessResourcesLeaveTheMachine(t *testing.T) {
	sent := 0
	transport := dryRunOnly{roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
	})}
	for name, c := range map[string]struct {
		method, url, body string
		passes            bool
	}{
		"a dry run that creates":                 {"POST", "/api/v1/namespaces/a/pods?dryRun=All", "{}", true},
		"a dry run that patches":                 {"PATCH", "/api/v1/namespaces/a?dryRun=All", "{}", true},
		"a dry run that deletes":                 {"DELETE", "/api/v1/namespaces/a?dryRun=All", "", true},
		"a question about permissions":           {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?dryRun=All", "{}", true},
		"a list of Tenants":                      {"GET", "/apis/landwaiter.dev/v1beta1/tenants?limit=500", "", true},
		"a list in a namespace":                  {"GET", "/api/v1/namespaces/a/configmaps?limit=500", "", true},
		"a creation":                             {"POST", "/api/v1/namespaces/a/pods", "{}", false},
		"a creation with an empty dryRun":        {"POST", "/api/v1/namespaces/a/pods?dryRun=", "{}", false},
		"a creation with two dryRuns":            {"POST", "/api/v1/namespaces/a/pods?dryRun=All&dryRun=x", "{}", false},
		"an update":                              {"PUT", "/api/v1/namespaces/a", "{}", false},
		"a deletion":                             {"DELETE", "/api/v1/namespaces/a", "", false},
		"a deletion whose body says otherwise":   {"DELETE", "/api/v1/namespaces/a?dryRun=All", `{"kind":"DeleteOptions"}`, false},
		"a read of a Secret":                     {"GET", "/api/v1/namespaces/a/secrets/b", "", false},
		"a list of Secrets":                      {"GET", "/api/v1/secrets", "", false},
		"a single object":                        {"GET", "/api/v1/namespaces/secrets", "", false},
		"a watch":                                {"GET", "/api/v1/namespaces?watch=true", "", false},
		"running a command, which may be a GET":  {"GET", "/api/v1/namespaces/a/pods/b/exec?command=x", "", false},
		"a proxied request":                      {"GET", "/api/v1/namespaces/a/services/b/proxy/namespaces", "", false},
		"a Secret by the name of another kind":   {"GET", "/api/v1/namespaces/a/secrets/namespaces", "", false},
		"a subresource of something that passes": {"GET", "/api/v1/namespaces/a/serviceaccounts/b/token", "", false},
		"metrics of the API server":              {"GET", "/metrics", "", false},
		"another method":                         {"OPTIONS", "/api/v1/namespaces", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			before := sent
			response, err := transport.RoundTrip(httptest.NewRequest(c.method, c.url, body))
			if c.passes {
				require.NoError(t, err)
				_ = response.Body.Close()
				require.Equal(t, before+1, sent)
				return
			}
			require.ErrorContains(t, err, "refused to send "+c.method)
			require.Equal(t, before, sent)
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
