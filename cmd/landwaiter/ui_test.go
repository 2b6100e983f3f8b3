package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestThePageSendsNoRequestThatChangesTheCluster(t *testing.T) {
	const reviews = "/apis/authorization.k8s.io/v1/namespaces/team-a/localsubjectaccessreviews"
	for name, c := range map[string]struct {
		method, path, upgrade string
		sent                  bool
	}{
		"a list":                          {"GET", "/api/v1/pods?limit=500", "", true},
		"whether Landwaiter may read":     {"POST", reviews, "", true},
		"a new pod":                       {"POST", "/api/v1/namespaces/team-a/pods", "", false},
		"a token":                         {"POST", "/api/v1/namespaces/team-a/serviceaccounts/x/token", "", false},
		"a change":                        {"PATCH", "/api/v1/namespaces/team-a/pods/x", "", false},
		"a dry run":                       {"PUT", "/api/v1/namespaces/team-a/pods/x?dryRun=All", "", false},
		"a deletion":                      {"DELETE", "/api/v1/namespaces/team-a/pods/x", "", false},
		"a method of nobody":              {"get", "/api/v1/pods", "", false},
		"a shell":                         {"GET", "/api/v1/namespaces/team-a/pods/x/exec?command=sh", "", false},
		"a namespace named proxy":         {"GET", "/api/v1/namespaces/proxy/pods", "", true},
		"a Secret named exec":             {"GET", "/api/v1/namespaces/team-a/secrets/exec", "", true},
		"a node":                          {"GET", "/api/v1/nodes/x/proxy/run/y", "", false},
		"a connection":                    {"GET", "/api/v1/pods", "websocket", false},
		"a Service behind the API server": {"GET", "/api/v1/namespaces/team-a/services/x/proxy/delete", "", false},
		"whether the server answers":      {"GET", "/api/v1/namespaces/landwaiter-system/services/https:landwaiter:443/proxy/", "", true},
		"whether a dashboard answers":     {"GET", "/api/v1/namespaces/team-a/services/x/proxy/", "", false},
		"a path of the server":            {"GET", "/api/v1/namespaces/landwaiter-system/services/https:landwaiter:443/proxy/v1/x", "", false},
		"something sent to the server":    {"POST", "/api/v1/namespaces/landwaiter-system/services/https:landwaiter:443/proxy/", "", false},
		"a review through a Service":      {"POST", "/api/v1/namespaces/team-a/services/x/proxy" + reviews, "", false},
		"a review of somebody":            {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", false},
	} {
		for _, prefix := range []string{"", "/k8s/clusters/one"} {
			t.Run(name+prefix, func(t *testing.T) {
				sent := false
				server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent = true }))
				defer server.Close()
				config := &rest.Config{Host: server.URL + prefix}
				_, err := readOnly(config)
				require.NoError(t, err)
				client, err := rest.HTTPClientFor(config)
				require.NoError(t, err)
				request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+prefix+c.path, nil)
				require.NoError(t, err)
				if c.upgrade != "" {
					request.Header.Set("Upgrade", c.upgrade)
				}
				response, err := client.Do(request)
				if c.sent {
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
				} else {
					require.ErrorIs(t, err, errWrites)
				}
				require.Equal(t, c.sent, sent)
			})
		}
	}
}

func TestAnAPIServerWithoutASchemeIsReadOnlyToo(t *testing.T) {
	for host, want := range map[string]struct{ address, prefix string }{
		"10.0.0.1:6443":                       {"https://10.0.0.1:6443", ""},
		"cluster.example.com":                 {"https://cluster.example.com", ""},
		"https://cluster.example.com/k8s/one": {"https://cluster.example.com/k8s/one", "/k8s/one"},
	} {
		config := &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}}
		address, err := readOnly(config)
		require.NoError(t, err, host)
		require.Equal(t, want.address, address, host)
		wrapped, ok := config.WrapTransport(nil).(reads)
		require.True(t, ok)
		require.Equal(t, want.prefix, wrapped.prefix, host)
		for path, allowed := range map[string]bool{"/api/v1/pods": true, "/api/v1/nodes/x/proxy/run": false} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x"+want.prefix+path, nil)
			require.NoError(t, err)
			require.Equal(t, allowed, wrapped.allows(request), host+path)
		}
	}
	for _, host := range []string{"https://[::1", "cluster.example.com/k8s/one"} { // as kubectl refuses them
		_, err := readOnly(&rest.Config{Host: host})
		require.ErrorContains(t, err, "read the address of the API server")
	}
}

func TestThePageOfFilesIsServedUntilThePersonEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"ui", "--no-browser", "--config-dir", "../../config/samples", "--open", "/namespaces/iris-green-web"}, printed, io.Discard)
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSpace(address), nil)
	require.NoError(t, err)
	response, err := (&http.Client{Jar: jar}).Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Regexp(t, "^/s/[0-9a-f]{64}/namespaces/iris-green-web$", response.Request.URL.RequestURI(), "the token is in no address that stays")
	require.Contains(t, string(text), "VerificationPolicy iris-green/releases and ClusterVerificationPolicy platform-mandatory apply.")
	cancel()
	require.Equal(t, 0, <-ended)
}

func TestThePageRefusesWhatItCannotServe(t *testing.T) {
	for want, args := range map[string][]string{
		"--config-dir is empty":            {"--config-dir", ""},
		"it must be a path":                {"--config-dir", "../../config/samples", "--open", "http://127.0.0.1:1/"},
		"no such file":                     {"--config-dir", "testdata/none"},
		"--port 70000: it must be a port":  {"--config-dir", "../../config/samples", "--port", "70000"},
		"verdicts do not depend on listen": {"--config-dir", "../../config/samples", "--serve-flag", "listen=:1"},
	} {
		var stderr strings.Builder
		require.Equal(t, 64, run(t.Context(), append([]string{"ui", "--no-browser"}, args...), io.Discard, &stderr), want)
		require.Contains(t, stderr.String(), want)
	}
}

func TestAWhatIfSpeaksOfFieldsAndLines(t *testing.T) {
	require.EqualError(t, pasteError(errors.New("standard input:3: VerificationPolicy a/b: spec: wrong\nstandard input:12: no standard input:1: here")),
		"line 3: VerificationPolicy a/b: spec: wrong\nline 12: no standard input:1: here")
	var said strings.Builder
	elsewhere := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "team-b"}}
	cluster := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	change := live.Change{Objects: resource.Objects{Resources: []v1beta1.Object{elsewhere, cluster}}}
	(&look{stderr: &said, words: fieldWords(), change: change, looked: []verify.Namespace{"team-a"}}).warn(live.Scope{Namespaces: []verify.Namespace{"team-a"}})
	require.Equal(t, "note: the change has cluster-scoped resources, but preview only covered namespace team-a; leave the field Namespace empty for the "+
		"whole cluster\n"+
		"note: the change has objects of namespace team-b, where no image was verified; enter team-b in the field Namespace, or leave the field empty\n",
		said.String())
}
