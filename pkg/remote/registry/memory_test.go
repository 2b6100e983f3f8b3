package registry_test

import (
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
	client := registry.NewClient(registry.Options{RequestTimeout: 30 * time.Second})
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
	content := strings.Repeat("x", 1<<16)
	large := ocispec.Descriptor{Digest: digest.FromString(content), Size: int64(len(content))}
	h.Handle("", "/blobs/", answering("application/octet-stream", content))
	client := registry.NewClient(registry.Options{BytesPerSecond: 1 << 16, RequestTimeout: 200 * time.Millisecond})
	t.Cleanup(client.Close)
	fetch := func(namespace verify.Namespace) error {
		_, err := of(client, registry.Access{Namespace: namespace, Hosts: plain(h.Host())}).Fetch(t.Context(), parse(t, h.Host()+"/app"), large, 1<<20)
		return err
	}
	require.NoError(t, fetch("team-b"))
	err := fetch("team-b")
	require.ErrorContains(t, err, "overloaded")
	require.False(t, verify.IsPermanent(err))
	require.NoError(t, fetch("team-a"), "another account has a pace of its own")
}
