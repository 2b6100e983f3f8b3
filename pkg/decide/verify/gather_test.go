package verify

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// zeros is a repository whose blobs are of the size that is asked for.
type zeros struct {
	Repository

	mu    sync.Mutex
	reads int
	panic bool
}

func (z *zeros) Fetch(_ context.Context, desc ocispec.Descriptor, _ int64) ([]byte, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.reads++
	if z.panic {
		panic("a fault")
	}
	return make([]byte, desc.Size), nil
}

func at(r Repository) func() []Location {
	return func() []Location { return []Location{{Name: "r.example.com/app", Repository: r}} }
}

// blobsOf returns the blobs of an image at one location, whose list is there.
func blobsOf(b *budget) *blobs {
	whole := make(chan struct{})
	close(whole)
	return newBlobs(b, nil, 1, whole)
}

func blobOf(content string, size int64) ocispec.Descriptor {
	return ocispec.Descriptor{Digest: digest.FromString(content), Size: size}
}

func TestEachBlobIsReadOnceHoweverManyAsk(t *testing.T) {
	for name, r := range map[string]*zeros{"content": {}, "a panic": {panic: true}} {
		t.Run(name, func(t *testing.T) {
			b := blobsOf(NewEngine(none{}, time.Now, Options{}).budget("a"))
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					_, err := b.fetch(t.Context(), at(r), blobOf("a", 7), 10, 1)
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
	b := blobsOf(NewEngine(none{}, time.Now, Options{}).budget("a"))
	for i := range 8 {
		_, err := b.fetch(t.Context(), at(r), blobOf(string(rune('a'+i)), DefaultEvidenceBytes/9/8), DefaultEvidenceBytes/9, 1)
		require.NoError(t, err)
	}
	_, err := b.fetch(t.Context(), at(r), blobOf("one more", 64<<10+1), DefaultEvidenceBytes/9, 1)
	require.ErrorContains(t, err, "at most 16777216 bytes")
	require.True(t, IsPermanent(err))
	_, err = b.fetch(t.Context(), at(r), blobOf("negative", -DefaultEvidenceBytes/9), DefaultEvidenceBytes/9, 1)
	require.True(t, IsPermanent(err))
	_, err = b.fetch(t.Context(), at(r), blobOf("one more", 64<<10+1), DefaultEvidenceBytes/9, 1)
	require.ErrorContains(t, err, "at most 16777216 bytes", "a negative size makes no room")
	require.Equal(t, 8, r.reads)
	for i := range 16 {
		_, err := b.fetch(t.Context(), at(r), blobOf(fmt.Sprint("small", i), 64<<10), DefaultEvidenceBytes/9, 1)
		require.NoError(t, err, "there is room for signatures, however large attestations are")
	}
	_, err = b.fetch(t.Context(), at(r), blobOf("one too many", 1), DefaultEvidenceBytes/9, 1)
	require.True(t, IsPermanent(err))
}

func TestTheEvidenceOfAnAccountFitsIntoItsShareOfTheMemory(t *testing.T) {
	r := &zeros{}
	engine := NewEngine(none{}, time.Now, Options{EvidenceBytes: 100})
	own, again, other := engine.budget("a"), engine.budget("a"), engine.budget("b")
	read := func(b *budget, size int64) error {
		_, err := blobsOf(b).fetch(t.Context(), at(r), blobOf("a", size), DefaultEvidenceBytes/9, 2)
		return err
	}
	require.NoError(t, read(own, 20))
	err := read(again, 20)
	require.ErrorIs(t, err, errOverloaded, "a byte counts twice here")
	require.False(t, IsPermanent(err), "there is room once other images are done")
	require.Equal(t, 1, r.reads, "without memory nothing is read")
	require.True(t, again.refused.Load())
	require.NoError(t, read(other, 20), "another account has its share")
	own.release()
	own.release()
	require.NoError(t, read(again, 20))
}
