package verify

import (
	"context"
	"fmt"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// blobs reads content for one image: each blob once, at most left bytes in all, and no
// more than the account has memory for. Every caller shares the context of the image's
// work, so one read may serve all.
type blobs struct {
	budget *budget

	mu    sync.Mutex
	left  int64
	reads map[string]func() ([]byte, error)
}

func newBlobs(budget *budget) *blobs {
	return &blobs{budget: budget, left: MaxImageBytes, reads: map[string]func() ([]byte, error){}}
}

// fetch reads a blob of at most limit bytes at the first of locations that serves it. It holds
// so many times its size in memory.
func (b *blobs) fetch(ctx context.Context, where []Location, desc ocispec.Descriptor, limit, times int64) ([]byte, error) {
	if desc.Size < 0 || desc.Size > limit { // a negative size would enlarge what is left
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s is %d bytes large, the limit is %d", desc.Digest, desc.Size, limit))
	}
	read, err := b.read(ctx, where, desc, limit, times)
	if err != nil {
		return nil, err
	}
	return read()
}

// read returns the function that reads a descriptor once, on its first call.
func (b *blobs) read(ctx context.Context, where []Location, desc ocispec.Descriptor, limit, times int64) (func() ([]byte, error), error) {
	// Size and media type are part of the identity: with them the registry
	// client decides what it reads and how. So are the locations: one that fails must not
	// fail evidence that another holds.
	key := fmt.Sprintf("%s %d %s %s", desc.Digest, desc.Size, names(where), desc.MediaType)
	b.mu.Lock()
	defer b.mu.Unlock()
	if read, ok := b.reads[key]; ok {
		return read, nil
	}
	if desc.Size > b.left {
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the evidence is larger than %d bytes in all", MaxImageBytes))
	}
	if err := b.budget.hold(times * desc.Size); err != nil {
		return nil, err
	}
	b.left -= desc.Size
	b.reads[key] = sync.OnceValues(func() (content []byte, err error) {
		// A panic becomes an error, because others wait for this blob.
		defer func() {
			if p := recover(); p != nil {
				content, err = nil, fmt.Errorf("internal error while fetching: %v", p)
			}
		}()
		return fetchAt(ctx, where, desc, limit)
	})
	return b.reads[key], nil
}
