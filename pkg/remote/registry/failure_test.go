package registry_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// statuses returns every status that means something, and some that do not.
func statuses() []int {
	all := []int{299, 399, 418, 420, 444, 451, 499, 509, 520, 529, 530, 599}
	for status := 201; status < 600; status++ {
		if http.StatusText(status) != "" && status != 418 && status != 451 {
			all = append(all, status)
		}
	}
	return all
}

// The list of failures that a retry would repeat is short. Every other status is transient,
// also one that nobody has thought of.
func TestOnlyAShortListOfStatusesIsPermanent(t *testing.T) {
	t.Parallel()
	h := hostile.New()
	t.Cleanup(h.Close)
	access := registry.Access{Namespace: "team-a", Hosts: plain(h.Host())}
	ref := parse(t, h.Host()+"/app:v1")
	for _, status := range statuses() {
		h.Handle("", "/v2/", hostile.Status(status))
		h.Handle("", "/token", hostile.Status(status))
		var want policy.Reason = "transient"
		switch status {
		case 401, 403:
			want = policy.ReasonAccessDenied
		case 404:
			want = policy.ReasonNotFound
		}
		s := session(t, registry.Options{}, access)
		require.Equal(t, want, reason(t, fetch(7)(t.Context(), s, ref)), "a blob: %d", status)
		require.Equal(t, want, reason(t, resolve(t.Context(), s, ref)), "a resolution: %d", status)
		if err := list(t.Context(), s, ref); status != 404 { // then there are no tags and no API
			require.Equal(t, want, reason(t, err), "a list: %d", status)
		} else {
			require.NoError(t, err)
		}
		h.Handle("", "/v2/", hostile.Status(401, `WWW-Authenticate: Bearer realm="http://`+h.Host()+`/token"`))
		switch status {
		case 404:
			want = "transient" // a token server knows no images
		case 400:
			want = policy.ReasonAccessDenied // RFC 6749, section 5.2
		}
		require.Equal(t, want, reason(t, fetch(7)(t.Context(), session(t, registry.Options{}, access), ref)), "a token: %d", status)
	}
}

func TestErrorCodesCanOnlyMakeAStatusTransient(t *testing.T) {
	t.Parallel()
	h := hostile.New()
	t.Cleanup(h.Close)
	s := session(t, registry.Options{}, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())})
	ref := parse(t, h.Host()+"/app:v1")
	for _, code := range []string{"", "BLOB_UNKNOWN", "DENIED", "DIGEST_INVALID", "MANIFEST_UNKNOWN", "NAME_INVALID", "NAME_UNKNOWN", "SIZE_INVALID",
		"UNAUTHORIZED", "UNSUPPORTED", "TOOMANYREQUESTS", "UNAVAILABLE", "UNKNOWN", "X"} {
		for _, status := range []int{400, 401, 403, 404, 405, 429, 500, 503} {
			h.Handle("", "/v2/", answerWith(status, `{"errors":[{"code":"OTHER"},{"code":"`+code+`","message":"DENIED NAME_UNKNOWN"}]}`))
			var want policy.Reason = "transient"
			switch {
			case status == 404:
				want = policy.ReasonNotFound
			case strings.HasPrefix(code, "TOOMANY"), code == "UNAVAILABLE":
			case status == 401, status == 403:
				want = policy.ReasonAccessDenied
			}
			require.Equal(t, want, reason(t, fetch(7)(t.Context(), s, ref)), "%d %s", status, code)
		}
	}
	for body, want := range map[string]policy.Reason{nameUnknown: policy.ReasonNotFound, plainNotFound: ""} {
		h.Handle("", "/v2/", answerWith(http.StatusNotFound, body))
		err := list(t.Context(), s, ref)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, want, reason(t, err))
	}
}

// What we refuse ourselves is permanent; what keeps us from asking is not.
func TestFailuresToConnectAreOfTheRightClass(t *testing.T) {
	t.Parallel()
	h := hostile.New()
	t.Cleanup(h.Close)
	closed := hostile.New()
	closed.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs each client that does not trust it
	tls.StartTLS()
	t.Cleanup(tls.Close)
	unknown := tls.Listener.Addr().String()
	garbage := saysGarbage(t)
	for name, c := range map[string]struct {
		host  string
		rules map[string]registry.HostRule
		want  policy.Reason
		text  string
		mends policy.Remedy
	}{
		"a private address":           {h.Host(), nil, policy.ReasonForbidden, "ClusterStore", ""},
		"a name on a private address": {strings.Replace(h.Host(), "127.0.0.1", "localhost", 1), nil, policy.ReasonForbidden, "ClusterStore", ""},
		"a name that does not exist":  {"registry.invalid", nil, "transient", ": the host name registry.invalid does not resolve in DNS", ""},
		"nobody listens": {closed.Host(), plain(closed.Host()), "transient", closed.Host() + " refuses the connection: nothing listens there",
			policy.RemedyStart},
		"no TLS": {h.Host(), map[string]registry.HostRule{h.Host(): {Private: true}}, "transient",
			h.Host() + " speaks plain HTTP, without TLS", policy.RemedyServeTLS},
		"garbage for a handshake": {garbage, map[string]registry.HostRule{garbage: {Private: true}}, "transient",
			garbage + " answers with something that is no TLS: it may speak plain HTTP", policy.RemedyServeTLS},
		"an unknown authority": {unknown, map[string]registry.HostRule{unknown: {Private: true}}, "transient",
			unknown + " has a certificate that is not trusted: its CA is unknown", policy.RemedyTrustCA},
		"no TLS, and not allowed to be": {h.Host(), map[string]registry.HostRule{h.Host(): {PlainHTTP: true}}, policy.ReasonForbidden, "ClusterStore", ""},
		"a cloud's address for machines": {"169.254.169.254", nil, policy.ReasonForbidden,
			"correct the name of the image: 169.254.169.254 is no registry", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := session(t, registry.Options{DialTimeout: 5 * time.Second}, registry.Access{Namespace: "team-a", Hosts: c.rules})
			err := fetch(7)(t.Context(), s, parse(t, c.host+"/app:v1"))
			require.Equal(t, c.want, reason(t, err), err)
			found := verify.FindingOf(err)
			require.Contains(t, err.Error()+" "+found.Remediation, c.text)
			if name != "a name that does not exist" { // which needs a DNS server that says so
				require.Equal(t, c.mends, found.Remedy)
			}
			if c.mends != "" {
				require.Equal(t, c.mends.At(c.host), found.Remediation)
			}
		})
	}
}

// saysGarbage returns the address of a server that greets each client with a line of text.
func saysGarbage(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Write([]byte("220 mail.example.com ready\r\n"))
			_, _ = connection.Read(make([]byte, 4096)) // a close with unread bytes is a reset, which may overtake the text
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}

// Content is another's only if it is whole: one that is shorter than its Content-Length, or
// whose end only the connection shows, may have been cut.
func TestOnlyAWholeBodyIsAMismatch(t *testing.T) {
	t.Parallel()
	send := func(length int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if length >= 0 {
				w.Header().Set("Content-Length", fmt.Sprint(length))
			}
			_, _ = w.Write([]byte(body))
			_ = http.NewResponseController(w).Flush()
		}
	}
	// An answer of HTTP/1.0 ends with its connection, so nothing shows that it was cut.
	untilClose := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			connection, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = buffered.WriteString("HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n" + body)
			_ = buffered.Flush()
			_ = connection.Close()
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    policy.Reason
	}{
		"shorter than its Content-Length":         {send(7, "con"), "transient"},
		"shorter than its descriptor":             {send(-1, "con"), policy.ReasonContentMismatch},
		"shorter, until the connection closes":    {untilClose("con"), "transient"},
		"empty":                                   {send(-1, ""), policy.ReasonContentMismatch},
		"another Content-Length":                  {send(3, "con"), policy.ReasonContentMismatch},
		"whole":                                   {send(-1, "content"), ""},
		"another digest":                          {send(7, "forged!"), policy.ReasonContentMismatch},
		"another digest, length unknown":          {send(-1, "forged!"), policy.ReasonContentMismatch},
		"another digest, until the end":           {untilClose("forged!"), policy.ReasonContentMismatch},
		"longer than its descriptor":              {send(-1, "content and more"), policy.ReasonContentMismatch},
		"longer than its descriptor, not the end": {send(-1, strings.Repeat("content", 1<<20)), policy.ReasonContentMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostile.New()
			t.Cleanup(h.Close)
			h.Handle("", "/blobs/", c.handler)
			s := session(t, registry.Options{}, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())})
			err := fetch(7)(t.Context(), s, parse(t, h.Host()+"/app"))
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, fetch(8)(t.Context(), s, parse(t, h.Host()+"/app")), "the digest decides")
				require.Equal(t, policy.ReasonContentMismatch, reason(t, fetch(6)(t.Context(), s, parse(t, h.Host()+"/app"))), "what is past the size is not read")
				return
			}
			require.Equal(t, c.want, reason(t, err))
		})
	}
}

func TestAShorterSignatureManifestIsNoMismatch(t *testing.T) {
	t.Parallel()
	h := hostile.New()
	t.Cleanup(h.Close)
	const manifest = `{"schemaVersion":2}`
	sent := manifest[:5]
	h.Handle(http.MethodHead, ".sig", hostile.Manifest(manifest))
	h.Handle(http.MethodGet, ".sig", func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(buffered, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\nDocker-Content-Digest: %s\r\n\r\n%s", ocispec.MediaTypeImageManifest,
			digest.FromString(manifest), sent)
		_ = buffered.Flush()
		_ = connection.Close()
	})
	s := session(t, registry.Options{}, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())})
	ref := parse(t, h.Host()+"/app")
	require.EqualValues(t, "transient", reason(t, list(t.Context(), s, ref)))
	sent = `{"schemaVersion":3}`
	require.Equal(t, policy.ReasonContentMismatch, reason(t, list(t.Context(), s, ref)), "whole, and forged")
	sent = manifest
	require.NoError(t, list(t.Context(), s, ref))
}
