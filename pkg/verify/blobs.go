package verify

import (
	"context"
	"fmt"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// blobs reads content of one repository for one image: each digest once,
// whoever asks, and no more than left bytes in all.
type blobs struct {
	registry Registry
	repo     image.Reference

	mu       sync.Mutex
	left     int64
	byDigest map[string]*blob
}

type blob struct {
	done    chan struct{}
	content []byte
	err     error
}

// fetch is a [Fetch].
func (b *blobs) fetch(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if desc.Size > limit {
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s is %d bytes large, the limit is %d", desc.Digest, desc.Size, limit))
	}
	// Size and media type are part of the identity: with them the registry
	// client decides what it reads and how.
	key := fmt.Sprintf("%s %d %s", desc.Digest, desc.Size, desc.MediaType)
	b.mu.Lock()
	read, known := b.byDigest[key]
	if !known {
		if desc.Size > b.left {
			b.mu.Unlock()
			return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the evidence is larger than %d bytes in all", MaxImageBytes))
		}
		b.left -= desc.Size
		read = &blob{done: make(chan struct{})}
		b.byDigest[key] = read
	}
	b.mu.Unlock()
	if !known {
		read.load(func() ([]byte, error) { return b.registry.Fetch(ctx, b.repo, desc, limit) })
	}
	select {
	case <-read.done:
		return read.content, read.err
	case <-ctx.Done():
		return nil, fmt.Errorf("fetch %s: %w", desc.Digest, ctx.Err())
	}
}

// load fetches. A panic becomes an error: others wait for this blob.
func (r *blob) load(fetch func() ([]byte, error)) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.content, r.err = nil, fmt.Errorf("internal error while fetching: %v", p)
		}
	}()
	r.content, r.err = fetch()
}
