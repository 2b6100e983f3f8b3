package provider

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/open-policy-agent/frameworks/constraint/pkg/apis/externaldata/unversioned"
	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGatekeepersOwnClientUnderstandsEveryAnswer asks with the code that
// Gatekeeper asks with, and turns the answers into what Rego sees.
func TestGatekeepersOwnClientUnderstandsEveryAnswer(t *testing.T) {
	w := serve(t, byRepository, nil)
	at := "@" + someDigest.String()
	for name, c := range map[string]struct {
		path        string
		keys        []string
		responses   map[string]any // key: isSuccess, or the value of a mutation
		errors      []string
		systemError string
		status      int
	}{
		"verify": {path: "/v1/verify", keys: []string{"[team-a]r.example.com/a", "[team-a]r.example.com/d", "[team-a]r.example.com/a"},
			responses: map[string]any{"[team-a]r.example.com/a": true, "[team-a]r.example.com/d": false}, status: 200},
		"verify by digest": {path: "/v1/verify", keys: []string{"[team-a]r.example.com/a" + at}, responses: map[string]any{"[team-a]r.example.com/a" + at: true},
			status: 200},
		"verdict": {path: "/v1/verdict", keys: []string{"[team-a]r.example.com/a", "[team-a]r.example.com/d", "[team-a]r.example.com/a"},
			responses: map[string]any{"[team-a]r.example.com/a": true, "[team-a]r.example.com/d": false}, status: 200},
		"undecided verdict": {path: "/v1/verdict", keys: []string{"r.example.com/a", "r.example.com/u"}, systemError: "could not be decided", status: 200},
		"malformed verdict": {path: "/v1/verdict", keys: []string{"[]r.example.com/a"}, errors: []string{"[]r.example.com/a"}, status: 200},
		"verify for an audit": {path: "/v1/audit/verify", keys: []string{"[team-a]r.example.com/a", "[team-a]r.example.com/d"},
			responses: map[string]any{"[team-a]r.example.com/a": true, "[team-a]r.example.com/d": false}, status: 200},
		"undecided for an audit": {path: "/v1/audit/verify", keys: []string{"r.example.com/a", "r.example.com/u"}, systemError: "could not be decided", status: 200},
		"verify for Ratify's templates": {path: "/ratify/gatekeeper/v1/verify", keys: []string{"[team-a]r.example.com/a"},
			responses: map[string]any{"[team-a]r.example.com/a": true}, status: 200},
		"verify in a namespace": {path: "/v1/namespaces/team-a/verify", keys: []string{"r.example.com/a", "[team-b]r.example.com/a"},
			responses: map[string]any{"r.example.com/a": true}, errors: []string{"[team-b]r.example.com/a"}, status: 200},
		"mutate": {path: "/v1/mutate", keys: []string{"r.example.com/a:v1", "r.example.com/missing", "", "auto"},
			responses: map[string]any{"r.example.com/a:v1": "r.example.com/a:v1" + at, "": "", "auto": "auto"}, errors: []string{"r.example.com/missing"}, status: 200},
		"nothing asked":   {path: "/v1/verify", status: 200},
		"undecided":       {path: "/v1/verify", keys: []string{"r.example.com/a", "r.example.com/u"}, systemError: "could not be decided", status: 200},
		"malformed":       {path: "/v1/verify", keys: make([]string, maxKeys+1), systemError: "the limit is 2048", status: 413},
		"no such path":    {path: "/v1/other", keys: []string{"r.example.com/a"}, systemError: "no such path", status: http.StatusNotFound},
		"invalid UTF-8":   {path: "/v1/verify", keys: []string{"r.example.com/\xff"}, errors: []string{"r.example.com/\ufffd"}, status: 200},
		"HTML in the key": {path: "/v1/verify", keys: []string{"<b>&"}, errors: []string{"<b>&"}, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			provider := &unversioned.Provider{ObjectMeta: metav1.ObjectMeta{Name: t.Name()}, Spec: unversioned.ProviderSpec{
				URL: "https://" + w.server.Address() + c.path, Timeout: 20, CABundle: base64.StdEncoding.EncodeToString(w.authority.CertificatePEM)}}
			response, status, err := externaldata.DefaultSendRequestToProvider(context.Background(), provider, c.keys, &w.client.TLS)
			t.Cleanup(func() { externaldata.DefaultClientCache().Invalidate(t.Name()) })
			require.NoError(t, err)
			require.Equal(t, c.status, status)
			tags := c.systemError == "" && len(c.responses) > 0 && !strings.Contains(c.path, "mutate") && name != "verify by digest"
			require.Equal(t, !tags, response.Response.Idempotent, "a tag may move; Gatekeeper refuses mutations that are not idempotent")
			seen := externaldata.NewRegoResponse(status, response)
			require.Contains(t, seen.SystemError, c.systemError)
			require.Equal(t, c.systemError == "", seen.SystemError == "")
			require.Len(t, seen.Responses, len(c.responses))
			for _, pair := range seen.Responses {
				key, _ := pair[0].(string)
				got := pair[1]
				if fields, ok := got.(map[string]any); ok {
					got = fields["isSuccess"]
				}
				require.Equal(t, c.responses[key], got, key)
			}
			var failed []string
			for _, pair := range seen.Errors {
				key, _ := pair[0].(string)
				failed = append(failed, key)
			}
			require.Equal(t, c.errors, failed)
		})
	}
}
