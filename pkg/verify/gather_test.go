package verify

import (
	"context"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/image"
)

// zeros is a registry whose blobs are of the size that is asked for.
type zeros struct {
	Registry

	mu    sync.Mutex
	reads int
	panic bool
}

func (z *zeros) Fetch(_ context.Context, _ image.Reference, desc ocispec.Descriptor, _ int64) ([]byte, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.reads++
	if z.panic {
		panic("a fault")
	}
	return make([]byte, desc.Size), nil
}

func blobOf(content string, size int64) ocispec.Descriptor {
	return ocispec.Descriptor{Digest: digest.FromString(content), Size: size}
}

func TestEachBlobIsReadOnceHoweverManyAsk(t *testing.T) {
	for name, r := range map[string]*zeros{"content": {}, "a panic": {panic: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBlobs(r, image.Reference{})
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					_, err := b.fetch(t.Context(), blobOf("a", 7), 10)
					if r.panic {
						require.ErrorContains(t, err, "internal error")
					} else {
						require.NoError(t, err)
					}
				})
			}
			all.Wait()
			require.Equal(t, 1, r.reads)
		})
	}
}

func TestBlobsOfOneImageAreBoundedInAll(t *testing.T) {
	r := &zeros{}
	b := newBlobs(r, image.Reference{})
	for i := range 8 {
		_, err := b.fetch(t.Context(), blobOf(string(rune('a'+i)), MaxImageBytes/8), MaxImageBytes)
		require.NoError(t, err)
	}
	_, err := b.fetch(t.Context(), blobOf("one more", 1), MaxImageBytes)
	require.ErrorContains(t, err, "larger than")
	require.True(t, IsPermanent(err))
	_, err = b.fetch(t.Context(), blobOf("negative", -MaxImageBytes), MaxImageBytes)
	require.True(t, IsPermanent(err))
	_, err = b.fetch(t.Context(), blobOf("one more", 1), MaxImageBytes)
	require.ErrorContains(t, err, "larger than", "a negative size makes no room")
	require.Equal(t, 8, r.reads)
}
