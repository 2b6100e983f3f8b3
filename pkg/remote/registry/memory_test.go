package registry_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

// answering answers with a text of a media type.
func answering(mediaType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(w, text)
	}
}

func TestAListOfManyShortDescriptorsIsNotDecoded(t *testing.T) {
	list := `{"schemaVersion":2,"manifests":[` + strings.Repeat("{},", 300_000) + `{}]}`
	for name, part := range map[string]string{"from the API": "/referrers/", "from the fallback tag": "/manifests/sha256-" + someDigest.Encoded()} {
		t.Run(name, func(t *testing.T) {
			h := hostile.New()
			t.Cleanup(h.Close)
			h.Handle("", ".sig", hostile.Status(http.StatusNotFound))
			h.Handle("", part, answering(ocispec.MediaTypeImageIndex, list))
			h.Handle("", ".sig", hostile.Status(http.StatusNotFound))
			s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
			var found []ocispec.Descriptor
			var err error
			took := memory.Allocated(func() { found, err = s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String())) })
			require.Equal(t, policy.ReasonLimitExceeded, reason(t, err), err)
			require.Empty(t, found)
			require.Less(t, took, 16<<20)
		})
	}
}

// An account that has large answers on their way takes no memory of another one.
func TestAnswersThatAreBeingReadFitIntoTheShareOfTheirAccount(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	sent, release := make(chan struct{}, 1024), make(chan struct{})
	h.Handle("", ".sig", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/large/") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", someDigest.String())
		w.Header().Set("Content-Length", "1048576")
		_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20-1024))
		_ = http.NewResponseController(w).Flush()
		sent <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	client := registry.NewClient(registry.Options{RequestTimeout: 5 * time.Minute}) // nothing but memory ends an answer
	t.Cleanup(client.Close)
	of := func(namespace verify.Namespace) first {
		return of(client, registry.Access{Namespace: namespace, Hosts: plain(h.Host())})
	}
	large, small := parse(t, h.Host()+"/large/app@"+someDigest.String()), parse(t, h.Host()+"/app@"+someDigest.String())
	var all sync.WaitGroup
	failed := make(chan error, 64)
	for range 40 {
		all.Go(func() {
			_, err := of("team-b").Referrers(t.Context(), large)
			failed <- err
		})
	}
	for range 40 {
		<-sent
	}
	err := <-failed // before any is released
	require.ErrorContains(t, err, "overloaded")
	require.False(t, verify.IsPermanent(err))
	_, err = of("team-a").Referrers(t.Context(), small)
	require.NoError(t, err)
	end()
	all.Wait()
	_, err = of("team-b").Referrers(t.Context(), small)
	require.NoError(t, err, "memory is given back")
}

// Reading, hashing and scanning take processor time, however little memory they need.
func TestAnAccountReadsAtItsPace(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	byteOf := ocispec.Descriptor{Digest: digest.FromString("x"), Size: 1}
	h.Handle("", "/blobs/", answering("application/octet-stream", "x"))
	client := registry.NewClient(registry.Options{BytesPerSecond: 1})
	t.Cleanup(client.Close)
	fetch := func(ctx context.Context, namespace verify.Namespace) error {
		_, err := of(client, registry.Access{Namespace: namespace, Hosts: plain(h.Host())}).Fetch(ctx, parse(t, h.Host()+"/app"), byteOf, 1<<20)
		return err
	}
	require.NoError(t, fetch(t.Context(), "team-b"))
	require.ErrorContains(t, flood(t, func(ctx context.Context) error { return fetch(ctx, "team-b") }), "overloaded")
	require.NoError(t, fetch(t.Context(), "team-a"), "another account has a pace of its own")
}

// flood makes twenty requests at once until one is refused, because at a pace of one a second it would wait for longer
// than a request may. It returns the refusal, which is transient, or nil. How slow the machine is does not matter.
func flood(t *testing.T, request func(context.Context) error) (refusal error) {
	t.Helper()
	const requests = 20
	ctx, end := context.WithCancel(t.Context())
	defer end()
	answers := make(chan error, requests)
	var all sync.WaitGroup
	defer all.Wait()
	for range requests {
		all.Go(func() { answers <- request(ctx) })
	}
	for range requests {
		if err := <-answers; err != nil && !verify.IsPermanent(err) {
			end()
			return err
		}
	}
	return nil
}
