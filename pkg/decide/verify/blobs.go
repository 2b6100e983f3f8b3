package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// blobs reads content for one image: each blob once per location, at most left bytes in total, and
// within the memory of the account. Every caller shares the context of the image's work, so one read
// may serve all.
type blobs struct {
	budget *budget
	kept   *kept
	part   int64           // part of the bytes that a location may take until whole is closed
	whole  <-chan struct{} // closed once every location has been listed
	reads  sync.WaitGroup

	mu    sync.Mutex
	left  int64            // for all pieces
	small int64            // for small ones in addition
	taken map[string]int64 // by the name of a location
	blobs map[string]*blob
}

// blob is one piece of content: its reads by the name of the location.
type blob struct {
	reads map[string]func() ([]byte, error)
}

func newBlobs(budget *budget, kept *kept, locations int, whole <-chan struct{}) *blobs {
	return &blobs{budget: budget, kept: kept, part: budget.imageBytes / int64(max(locations, 1)), whole: whole, left: budget.imageBytes,
		small: smallBytes, taken: map[string]int64{}, blobs: map[string]*blob{}}
}

// answer is the answer of one location.
type answer struct {
	from    string
	content []byte
	err     error
}

// fetch reads a blob of at most limit bytes from the first location that serves it. It tries the next one if one
// fails or is slow. where returns the locations, at least one, and may return more until whole is closed. The blob is
// charged times × its size.
func (b *blobs) fetch(ctx context.Context, where func() []Location, desc ocispec.Descriptor, limit, times int64) ([]byte, error) {
	if desc.Size > b.budget.imageBytes {
		return nil, b.tooLarge(fmt.Sprintf("%s is %d bytes large", desc.Digest, desc.Size))
	}
	if desc.Size < 0 || desc.Size > limit { // a negative size would enlarge what is left
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s is %d bytes large, the limit is %d", desc.Digest, desc.Size, limit))
	}
	blob, err := b.take(ctx, where()[0].Name, desc, times)
	if err != nil {
		return nil, err
	}
	answers, errs := make(chan answer), map[string]error{} // by location; nil while the request runs
	ended := make(chan struct{})
	defer close(ended)
	slow := time.NewTimer(patience)
	defer slow.Stop()
	whole, done, asking := b.whole, ctx.Done(), 0
	for next := true; ; {
		if next {
			location, ok := b.unasked(blob, where(), errs)
			switch {
			case ok && (ctx.Err() == nil || len(errs) == 0):
				errs[location.Name], next = nil, false
				asking++
				read := b.read(ctx, blob, location, desc, limit)
				b.reads.Go(func() {
					content, err := read()
					select {
					case answers <- answer{location.Name, content, err}:
					case <-ended:
					}
				})
				slow.Reset(patience)
			case asking == 0 && (ok || whole == nil || done == nil):
				return nil, failures(where(), errs, ctx.Err(), ok || whole != nil)
			}
		}
		select {
		case a := <-answers:
			if a.err == nil {
				return a.content, nil
			}
			errs[a.from], next = a.err, true
			asking--
		case <-slow.C:
			next = true
			slow.Reset(patience) // meanwhile, another location may list it
		case <-whole:
			whole = nil
		case <-done: // pending requests end, too
			done = nil
		}
	}
}

// take charges a blob, once. Until every location has been listed, one takes at most its part. Requests beyond it
// wait, and fail only if everything is used up then.
func (b *blobs) take(ctx context.Context, location string, desc ocispec.Descriptor, times int64) (*blob, error) {
	// Size and media type are part of the identity: the registry client reads by them.
	key := fmt.Sprintf("%s %d %s", desc.Digest, desc.Size, desc.MediaType)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blobs[key] == nil && b.taken[location]+desc.Size > b.part {
		b.mu.Unlock()
		err := b.awaitWhole(ctx)
		b.mu.Lock()
		if err != nil {
			return nil, fmt.Errorf("fetch %s: %w", desc.Digest, err)
		}
	}
	if known := b.blobs[key]; known != nil {
		return known, nil
	}
	from := &b.left
	if desc.Size > b.left && desc.Size <= smallBlob {
		from = &b.small
	}
	if desc.Size > *from {
		return nil, b.tooLarge("the image has more evidence than is read")
	}
	if err := b.budget.hold(times * desc.Size); err != nil {
		return nil, err
	}
	*from -= desc.Size
	b.taken[location] += desc.Size
	b.blobs[key] = &blob{reads: map[string]func() ([]byte, error){}}
	return b.blobs[key], nil
}

// tooLarge is the error for evidence past the limit of one image, which only a cluster admin can raise.
func (b *blobs) tooLarge(what string) error {
	return PermanentWith(policy.ReasonLimitExceeded, fmt.Errorf("%s, at most %d bytes for one image", what, b.budget.imageBytes), fixTooLarge)
}

func (b *blobs) awaitWhole(ctx context.Context) error {
	select {
	case <-b.whole:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unasked returns the first location that is not in asked. It prefers one that another caller has already asked.
func (b *blobs) unasked(blob *blob, where []Location, asked map[string]error) (Location, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	where = slices.DeleteFunc(slices.Clone(where), func(l Location) bool { _, ok := asked[l.Name]; return ok })
	if i := slices.IndexFunc(where, func(l Location) bool { return blob.reads[l.Name] != nil }); i >= 0 {
		return where[i], true
	}
	if len(where) == 0 {
		return Location{}, false
	}
	return where[0], true
}

// read returns the function that reads a blob at a location once, on its first call.
func (b *blobs) read(ctx context.Context, blob *blob, location Location, desc ocispec.Descriptor, limit int64) func() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if read := blob.reads[location.Name]; read != nil {
		return read
	}
	if len(blob.reads) > 0 { // each has its own copy
		if err := b.budget.hold(desc.Size); err != nil {
			return func() ([]byte, error) { return nil, err }
		}
	}
	blob.reads[location.Name] = sync.OnceValues(func() (content []byte, err error) {
		// A panic becomes an error, because others wait for this blob.
		defer func() {
			if p := recover(); p != nil {
				content, err = nil, fmt.Errorf("internal error while fetching: %v", p)
			}
		}()
		if content, ok := b.kept.content(desc); ok {
			return content, nil
		}
		if content, err = location.Fetch(ctx, desc, limit); err == nil {
			b.kept.add(desc.Digest, content)
		}
		return content, err
	})
	return blob.reads[location.Name]
}

// failures returns one error for locations that all failed, in their order. If more is set, others might have
// succeeded if ctx had not ended. ctx has ended.
func failures(where []Location, errs map[string]error, ended error, more bool) error {
	var all []error
	for _, location := range where {
		if err := errs[location.Name]; err != nil {
			all = append(all, err)
		}
	}
	if more {
		all = append(all, ended)
	}
	return nowhere(all)
}
