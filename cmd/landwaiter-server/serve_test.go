package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// running is a `landwaiter-server serve` in this process over a directory of resources,
// and a Gatekeeper that asks it.
type running struct {
	*example.Example
	resources string
	client    *gatekeeper.Client
	stop      context.CancelFunc
	ended     chan int
	log       *lockedBuffer
}

// lockedBuffer is a buffer that a server writes while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// freePort finds a port that nothing listens on, and that the kernel gives to no other test meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	ports, err := cluster.FreePorts(1)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

func startServe(t *testing.T, flags ...string) *running {
	t.Helper()
	s := &running{resources: filepath.Join(t.TempDir(), "resources"), ended: make(chan int, 1), log: &lockedBuffer{}}
	var err error
	s.Example, err = example.Start(t.Context(), s.resources)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Registry.Close()) })
	certificates, err := gatekeeper.Issue(t.TempDir())
	require.NoError(t, err)
	address, health := freePort(t), freePort(t)
	s.client = certificates.Ask("https://"+address, time.Minute)
	t.Cleanup(s.client.Close)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	args := append([]string{"serve", "--config-dir", s.resources, "--address", address, "--health-address", health, "--metrics-address", "",
		"--tls-dir", certificates.Dir(), "--client-ca", certificates.CAFile(),
		"--client-name", gatekeeper.ClientName, "--ttl", "tag=1ms", "--timeout", "verify=20s", "--timeout", "mutate=20s"}, flags...)
	go func() { s.ended <- run(ctx, args, s.log, s.log) }()
	t.Cleanup(func() { s.stop() })
	require.Eventually(t, func() bool { return ready(t, "http://"+health+"/readyz") }, time.Minute, 5*time.Millisecond, "%s", s.log)
	return s
}

func ready(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	require.NoError(t, response.Body.Close())
	return response.StatusCode == http.StatusOK
}

// verdict asks for one image of a namespace.
func (s *running) verdict(t *testing.T, namespace, image string) (verdict gatekeeper.Verdict, why string) {
	t.Helper()
	response, err := s.client.Ask(t.Context(), gatekeeper.VerifyPath, fmt.Sprintf("[%s]%s/%s", namespace, s.Registry.Host(), image))
	require.NoError(t, err)
	require.Empty(t, response.SystemError)
	require.Len(t, response.Items, 1)
	return gatekeeper.Judge(response.Items[0])
}

// becomes waits for a verdict to become the one wanted.
func (s *running) becomes(t *testing.T, namespace, image string, want gatekeeper.Verdict, why string) {
	t.Helper()
	var verdict gatekeeper.Verdict
	var said string
	require.Eventually(t, func() bool {
		verdict, said = s.verdict(t, namespace, image)
		return verdict == want && strings.Contains(said, why)
	}, time.Minute, 10*time.Millisecond, "last: %s: %s\n%s", verdict, said, s.log)
}

func (s *running) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.resources, name), []byte(text), 0o600))
}

func (s *running) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.resources, name))
	require.NoError(t, err)
	return string(text)
}

func TestServeFollowsItsDirectory(t *testing.T) {
	s := startServe(t)
	s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "Verifier team-a/release")
	s.becomes(t, "team-b", "shared/web:v1", gatekeeper.Allowed, "")
	s.becomes(t, "team-c", "shared/base:v1", gatekeeper.Allowed, "")
	good := s.read(t, "team-a.yaml")
	undisturbed := func() {
		for namespace, image := range map[string]string{"team-b": "shared/web:v1", "team-c": "shared/base:v1"} {
			verdict, why := s.verdict(t, namespace, image)
			require.Equal(t, gatekeeper.Allowed, verdict, why)
		}
	}
	for name, c := range map[string]struct{ text, why string }{
		"a misspelt field": {strings.Replace(good, "keys: {", "kyes: {", 1), "kyes"},
		"a missing Secret": {regexp.MustCompile(`inline: \|\n( {8}.*\n)+`).ReplaceAllString(good, "secretKeyRef: {name: gone, key: cosign.pub}\n"),
			"Secret team-a/gone does not exist"},
		"a file cut in half":  {good[:strings.Index(good, "trustStoreRefs")], "team-a"},
		"a file of garbage":   {"\x00\x01{{{{", "team-a"},
		"an unknown verifier": {strings.Replace(good, "anyOf: [release]", "anyOf: [other]", 1), "team-a has no Verifier other"},
	} {
		t.Run(name, func(t *testing.T) {
			s.write(t, "team-a.yaml", c.text)
			s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Denied, c.why)
			undisturbed()
			s.write(t, "team-a.yaml", good)
			s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "")
		})
	}
	t.Run("a new file that no one can read changes nothing", func(t *testing.T) {
		s.write(t, "new.yaml", "{{{{")
		require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "new.yaml") }, time.Minute, 10*time.Millisecond)
		s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "")
		undisturbed()
		require.NoError(t, os.Remove(filepath.Join(s.resources, "new.yaml")))
	})
	t.Run("deleting a namespace's file returns it to the cluster's resources", func(t *testing.T) {
		require.NoError(t, os.Remove(filepath.Join(s.resources, "team-a.yaml")))
		s.becomes(t, "team-a", "shared/base:v1", gatekeeper.Allowed, "ClusterVerifier release")
		s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Denied, "ClusterTrustStore base-keys")
		s.write(t, "team-a.yaml", good)
		s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "Verifier team-a/release")
	})
	t.Run("a mandatory policy holds at once", func(t *testing.T) {
		s.write(t, "mandatory.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: mandatory}\nspec:\n  scope: "+
			"Mandatory\n  rules:\n  - images: [\"**\"]\n    require: [{anyOf: [release]}]\n")
		s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Denied, "ClusterVerificationPolicy mandatory")
		require.NoError(t, os.Remove(filepath.Join(s.resources, "mandatory.yaml")))
		s.becomes(t, "team-a", "shared/app:v1", gatekeeper.Allowed, "")
	})
	s.stop()
	require.Equal(t, program.ExitOK, <-s.ended, s.log.String())
	require.NotContains(t, s.log.String(), "panic")
}

// serveOnce runs `landwaiter-server serve` until it ends by itself.
func serveOnce(t *testing.T, dir, address string) (code int, log string) {
	t.Helper()
	certificates, err := gatekeeper.Issue(t.TempDir())
	require.NoError(t, err)
	var out bytes.Buffer
	code = run(t.Context(), []string{"serve", "--config-dir", dir, "--address", address, "--health-address", "", "--metrics-address", "",
		"--tls-dir", certificates.Dir(), "--client-ca", certificates.CAFile()}, &out, &out)
	return code, out.String()
}

func TestServeRefusesADirectoryThatItDoesNotUnderstand(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("kind: {"), 0o600))
	code, log := serveOnce(t, dir, "127.0.0.1:0")
	require.Equal(t, program.ExitUsage, code)
	require.Contains(t, log, "x.yaml")
}

func TestServeEndsWithAnotherCodeIfItsAddressIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	code, log := serveOnce(t, t.TempDir(), taken.Addr().String())
	require.Equal(t, program.ExitUnavailable, code)
	require.Contains(t, log, "address already in use")
}
