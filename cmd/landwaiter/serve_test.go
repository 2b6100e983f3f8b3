package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// served is a `landwaiter serve` that runs in this process over a directory of
// resources, and a Gatekeeper that asks it.
type served struct {
	*scene
	resources string
	asking    *gatekeeper
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

// freePort finds a port that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func startServe(t *testing.T, flags ...string) *served {
	t.Helper()
	s := &served{scene: &scene{dir: t.TempDir()}, ended: make(chan int, 1), log: &lockedBuffer{}}
	var err error
	s.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.registry.Close()) })
	by, err := newSigners()
	require.NoError(t, err)
	require.NoError(t, s.build(t.Context(), by))
	s.resources, err = s.writeResources(by)
	require.NoError(t, err)
	asking, options, files, err := s.certificates()
	require.NoError(t, err)
	s.asking = asking
	address, health := freePort(t), freePort(t)
	s.asking.url = "https://" + address
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	args := append([]string{"serve", "--config-dir", s.resources, "--address", address, "--health-address", health, "--metrics-address", "",
		"--tls-cert", files.CertificateFile, "--tls-key", files.KeyFile, "--client-ca", files.ClientCAFiles[0],
		"--client-name", options.ClientNames[0], "--tag-ttl", "1ms"}, flags...)
	go func() { s.ended <- run(ctx, args, s.log, s.log) }()
	t.Cleanup(func() { s.stop() })
	require.NoError(t, waitReady(t.Context(), "http://"+health+"/readyz", nil), s.log.String())
	return s
}

// verdict asks for one image of a namespace.
func (s *served) verdict(t *testing.T, namespace, image string) (verdict, why string) {
	t.Helper()
	item, _, err := s.asking.verify(t.Context(), fmt.Sprintf("[%s]%s/%s", namespace, s.registry.Host(), image))
	require.NoError(t, err)
	return judge(item)
}

// becomes waits for a verdict to become the one wanted.
func (s *served) becomes(t *testing.T, namespace, image, want, why string) {
	t.Helper()
	var verdict, said string
	require.Eventually(t, func() bool {
		verdict, said = s.verdict(t, namespace, image)
		return verdict == want && strings.Contains(said, why)
	}, 5*time.Second, 10*time.Millisecond, "last: %s: %s\n%s", verdict, said, s.log)
}

func (s *served) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.resources, name), []byte(text), 0o600))
}

func (s *served) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.resources, name))
	require.NoError(t, err)
	return string(text)
}

func TestServeFollowsItsDirectory(t *testing.T) {
	s := startServe(t)
	s.becomes(t, "team-a", "shared/app:v1", "allowed", "Verifier team-a/release")
	s.becomes(t, "team-b", "shared/web:v1", "allowed", "")
	s.becomes(t, "team-c", "shared/base:v1", "allowed", "")
	good := s.read(t, "team-a.yaml")
	undisturbed := func() {
		for namespace, image := range map[string]string{"team-b": "shared/web:v1", "team-c": "shared/base:v1"} {
			verdict, why := s.verdict(t, namespace, image)
			require.Equal(t, "allowed", verdict, why)
		}
	}
	for name, c := range map[string]struct{ text, why string }{
		"a misspelt field":    {strings.Replace(good, "keys: [{", "kyes: [{", 1), "kyes"},
		"a missing Secret":    {strings.Replace(good, "secretRef: {name: cosign-pub", "secretRef: {name: gone", 1), "Secret team-a/gone is not there"},
		"a file cut in half":  {good[:len(good)/2], "team-a"},
		"a file of garbage":   {"\x00\x01{{{{", "team-a"},
		"an unknown verifier": {strings.Replace(good, "anyOf: [release]", "anyOf: [other]", 1), "verifier other does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			s.write(t, "team-a.yaml", c.text)
			s.becomes(t, "team-a", "shared/app:v1", "denied", c.why)
			undisturbed()
			s.write(t, "team-a.yaml", good)
			s.becomes(t, "team-a", "shared/app:v1", "allowed", "")
		})
	}
	t.Run("a new file that no one can read changes nothing", func(t *testing.T) {
		s.write(t, "new.yaml", "{{{{")
		require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "new.yaml") }, 5*time.Second, 10*time.Millisecond)
		s.becomes(t, "team-a", "shared/app:v1", "allowed", "")
		undisturbed()
		require.NoError(t, os.Remove(filepath.Join(s.resources, "new.yaml")))
	})
	t.Run("deleting a namespace's file returns it to the cluster's resources", func(t *testing.T) {
		require.NoError(t, os.Remove(filepath.Join(s.resources, "team-a.yaml")))
		s.becomes(t, "team-a", "shared/base:v1", "allowed", "ClusterVerifier release")
		s.becomes(t, "team-a", "shared/app:v1", "denied", "ClusterTrustStore base-keys")
		s.write(t, "team-a.yaml", good)
		s.becomes(t, "team-a", "shared/app:v1", "allowed", "Verifier team-a/release")
	})
	t.Run("a floor holds at once", func(t *testing.T) {
		s.write(t, "floor.yaml", resourceHead+"kind: ClusterVerificationPolicy\nmetadata: {name: floor}\nspec:\n  enforcement: Floor\n  rules:\n  - images: [\"**\"]\n    require: [{anyOf: [release]}]\n")
		s.becomes(t, "team-a", "shared/app:v1", "denied", "ClusterVerificationPolicy floor")
		require.NoError(t, os.Remove(filepath.Join(s.resources, "floor.yaml")))
		s.becomes(t, "team-a", "shared/app:v1", "allowed", "")
	})
	s.stop()
	require.Equal(t, exitOK, <-s.ended, s.log.String())
	require.NotContains(t, s.log.String(), "panic")
}

func TestServeRefusesADirectoryThatItDoesNotUnderstand(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("kind: {"), 0o600))
	s := &served{scene: &scene{dir: t.TempDir()}, log: &lockedBuffer{}}
	_, _, files, err := s.certificates()
	require.NoError(t, err)
	code := run(t.Context(), []string{"serve", "--config-dir", dir, "--address", "127.0.0.1:0", "--health-address", "", "--metrics-address", "",
		"--tls-cert", files.CertificateFile, "--tls-key", files.KeyFile, "--client-ca", files.ClientCAFiles[0]}, s.log, s.log)
	require.Equal(t, exitUndecided, code)
	require.Contains(t, s.log.String(), "x.yaml")
}
