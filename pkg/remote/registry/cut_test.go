package registry_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
)

// secureRegistry serves handler over TLS with HTTP/1.1 or HTTP/2, and returns its host and
// access to it.
func secureRegistry(t *testing.T, http2 bool, handler http.HandlerFunc) (string, registry.Access) {
	t.Helper()
	version := 1
	if http2 {
		version = 2
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ProtoMajor != version {
			t.Errorf("%s instead of HTTP/%d", req.Proto, version)
		}
		handler(w, req)
	}))
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	return host, accessTo(host, server.Certificate().Raw)
}

func accessTo(host string, certificate []byte) registry.Access {
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	return registry.Access{Namespace: "team-a", Hosts: map[string]registry.HostRule{host: {Private: true}},
		Stores: []registry.Store{{Registries: []string{host}, RootCAs: bundle,
			Logins: loginFor(host, registry.Credential{Username: "user", Password: "secret"})}}}
}

// cutAfter sends part of an answer and then ends the stream, or the connection of HTTP/1.1.
func cutAfter(status int, header, part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range strings.Split(header, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// An attacker in between, or a registry in trouble, can end any answer at any byte: that
// must never pass for an answer about the image.
func TestAnAnswerThatIsCutOffProvesNothing(t *testing.T) {
	const blob, manifest = "content", `{"schemaVersion":2}`
	const blobs, tokens, getTag, fallbackTag = "^GET .*/blobs/", "^GET /token", "^GET .*/manifests/v1", "^GET .*/manifests/sha256-[0-9a-f]*$"
	index := `{"schemaVersion":2,"manifests":[{"mediaType":"` + ocispec.MediaTypeImageManifest + `","digest":"` + someDigest.String() + `","size":2}]}`
	octets := "Content-Type: application/octet-stream"
	sized := func(n int) string { return fmt.Sprintf("\nContent-Length: %d", n) }
	manifestHeader := "Content-Type: " + ocispec.MediaTypeImageManifest + "\nDocker-Content-Digest: " + digest.FromString(manifest).String()
	indexHeader := "Content-Type: " + ocispec.MediaTypeImageIndex
	fetchManifest := func(ctx context.Context, s first, ref image.Reference) error {
		_, err := s.Fetch(ctx, ref, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString(manifest), Size: int64(len(manifest))},
			1024)
		return err
	}
	cases := map[string]struct {
		request string // a regular expression of what is cut
		cut     http.HandlerFunc
		call    func(context.Context, first, image.Reference) error
	}{
		"a blob, before its first byte":    {blobs, cutAfter(200, octets+sized(len(blob)), ""), fetch(7)},
		"a blob":                           {blobs, cutAfter(200, octets+sized(len(blob)), blob[:3]), fetch(7)},
		"a blob of unknown length":         {blobs, cutAfter(200, octets, blob[:3]), fetch(7)},
		"a blob, after its last byte":      {blobs, cutAfter(200, octets, blob), fetch(7)},
		"a blob of other content, at once": {blobs, cutAfter(200, octets, "forged!"), fetch(7)},
		"a blob, no answer at all":         {blobs, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fetch(7)},
		"a manifest":                       {`^GET .*/manifests/sha256:`, cutAfter(200, manifestHeader+sized(len(manifest)), manifest[:5]), fetchManifest},
		"a manifest, of unknown length":    {`^GET .*/manifests/sha256:`, cutAfter(200, manifestHeader, manifest[:5]), fetchManifest},
		"a signature tag":                  {`^GET .*\.sig$`, cutAfter(200, manifestHeader+sized(len(manifest)), manifest[:5]), list},
		"a signature tag, " +
			"without a digest": {`^GET .*\.sig$`, cutAfter(200, "Content-Type: "+ocispec.MediaTypeImageManifest+sized(len(manifest)), manifest[:5]), list},
		"a list":                    {`^GET .*/referrers/`, cutAfter(200, indexHeader+sized(len(index)), index[:40]), list},
		"a list, of unknown length": {`^GET .*/referrers/`, cutAfter(200, indexHeader, index[:40]), list},
		"the second page":           {`^GET .*n=2$`, cutAfter(200, indexHeader, index[:40]), list},
		"the fallback tag":          {fallbackTag, cutAfter(200, indexHeader+sized(len(index)), index[:40]), listByTag},
		"a token":                   {tokens, cutAfter(200, "Content-Type: application/json", `{"token":"`), fetch(7)},
		"a resolution":              {`^HEAD .*/manifests/v1`, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, resolve},
		"a resolution by GET":       {getTag, cutAfter(200, manifestHeader+sized(len(manifest)), manifest[:5]), resolve},
		"an error":                  {blobs, cutAfter(500, octets, `{"errors":[`), fetch(7)},
	}
	for name, c := range cases {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				var mu sync.Mutex
				cuts, healthy := 0, false
				var realm string
				cut := regexp.MustCompile(c.request)
				host, access := secureRegistry(t, http2, func(w http.ResponseWriter, req *http.Request) {
					mu.Lock()
					end := !healthy && cut.MatchString(req.Method+" "+req.URL.RequestURI())
					if end {
						cuts++
					}
					mu.Unlock()
					if end {
						c.cut(w, req)
					}
					serveWhole(w, req, realm, blob, manifest, index, c.request == fallbackTag, c.request == tokens, c.request == getTag)
				})
				realm = "https://" + host + "/token"
				client := registry.NewClient(registry.Options{})
				t.Cleanup(client.Close)
				err := c.call(t.Context(), of(client, access), parse(t, host+"/app:v1"))
				require.EqualValues(t, "transient", reason(t, err), err)
				mu.Lock()
				require.NotZero(t, cuts)
				healthy = true
				mu.Unlock()
				require.NoError(t, c.call(t.Context(), of(client, access), parse(t, host+"/app:v1")), "the same answer, whole")
			})
		}
	}
}

func listByTag(ctx context.Context, s first, ref image.Reference) error {
	found, err := s.Referrers(ctx, ref.WithDigest(someDigest))
	if err == nil && len(found) == 0 {
		return fmt.Errorf("found nothing")
	}
	return err
}

// serveWhole answers like a registry in good order.
func serveWhole(w http.ResponseWriter, req *http.Request, realm, blob, manifest, index string, noAPI, tokens, noHead bool) {
	send := func(mediaType, body string) {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", digest.FromString(body).String())
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if req.Method != http.MethodHead {
			_, _ = io.WriteString(w, body)
		}
	}
	switch {
	case strings.HasPrefix(req.URL.Path, "/token"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"token":"t"}`)
	case tokens && req.Header.Get("Authorization") != "Bearer t":
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	case noHead && req.Method == http.MethodHead:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.Contains(req.URL.Path, "/blobs/"):
		send("application/octet-stream", blob)
	case strings.HasSuffix(req.URL.Path, ".sig"), strings.Contains(req.URL.Path, "/manifests/sha256:"), strings.HasSuffix(req.URL.Path, "/v1"):
		send(ocispec.MediaTypeImageManifest, manifest)
	case strings.Contains(req.URL.Path, "/manifests/sha256-"):
		send(ocispec.MediaTypeImageIndex, index)
	case !noAPI && strings.Contains(req.URL.Path, "/referrers/"):
		if req.URL.RawQuery == "" {
			w.Header().Set("Link", "<"+req.URL.Path+`?n=2>; rel="next"`)
		}
		send(ocispec.MediaTypeImageIndex, index)
	default:
		http.NotFound(w, req)
	}
}

// A server can end an HTTP/2 stream with any error code, "no error" among them, or the
// whole connection with GOAWAY.
func TestNoEndOfAnHTTP2StreamProvesAnything(t *testing.T) {
	reset, goAway := byte(3), byte(7)
	ends := map[string][]byte{"the connection closes": nil}
	for code := range uint32(14) {
		ends[fmt.Sprintf("RST_STREAM %d", code)] = frame(reset, 0, 1, binary.BigEndian.AppendUint32(nil, code))
		last := binary.BigEndian.AppendUint32(nil, 1)
		ends[fmt.Sprintf("GOAWAY %d", code)] = frame(goAway, 0, 0, binary.BigEndian.AppendUint32(last, code))
	}
	for _, body := range []string{"", "con", "content"} {
		for name, end := range ends {
			t.Run(fmt.Sprintf("%s after %d bytes", name, len(body)), func(t *testing.T) {
				t.Parallel()
				host, certificate := rawHTTP2(t, body, end)
				s := session(t, registry.Options{}, accessTo(host, certificate))
				require.EqualValues(t, "transient", reason(t, fetch(7)(t.Context(), s, parse(t, host+"/app"))))
			})
		}
	}
}

// rawHTTP2 answers the first request of each connection with status 200, the body, and
// bytes that end it.
func rawHTTP2(t *testing.T, body string, end []byte) (host string, certificate []byte) {
	t.Helper()
	template := httptest.NewUnstartedServer(nil)
	template.StartTLS()
	pair := template.TLS.Certificates[0]
	template.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { answerRaw(connection, body, end) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	return listener.Addr().String(), pair.Certificate[0]
}

func answerRaw(connection net.Conn, body string, end []byte) {
	defer func() { _ = connection.Close() }()
	const headers, data, endHeaders = 1, 0, 4
	if _, err := io.CopyN(io.Discard, connection, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	for header := make([]byte, 9); ; {
		if _, err := io.ReadFull(connection, header); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, connection, int64(header[0])<<16|int64(header[1])<<8|int64(header[2])); err != nil {
			return
		}
		if header[3] == headers {
			break
		}
	}
	answer := frame(4, 0, 0, nil) // SETTINGS
	answer = append(answer, frame(headers, endHeaders, 1, []byte{0x88})...)
	if body != "" {
		answer = append(answer, frame(data, 0, 1, []byte(body))...)
	}
	_, _ = connection.Write(append(answer, end...))
}

// frame returns an HTTP/2 frame (RFC 9113, section 4.1).
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}
