package cache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Shown is one value in Redis, opened for a cluster admin. It has what a denial says, and
// no evidence.
type Shown struct {
	Kind  string
	Image string // host/repository@digest
	// UID is that of the namespace when the value was sealed.
	UID, Generation, Program string
	// Verdict is Undecided, which is never kept, if the value did not open.
	Verdict          policy.Verdict
	Written, Expires time.Time
	// Unopened says why the value did not open; the fields above are then empty.
	Unopened error
}

// Listing is what [Show] found.
type Listing struct {
	Entries []Shown
	// Keys is how many keys were looked at, Unopened how many of them did not open, and
	// LeftOff how many entries are past the limit.
	Keys, Unopened, LeftOff int
}

// Show opens the values of a namespace, or of cluster scope with [verify.Cluster], and
// returns at most limit of them: those of one repository, or one digest of it, if of is not
// nil. A value that does not open is about nobody knows which image, so it is only counted
// then. It scans all keys, as [Usage] does, and stops at the first error.
func Show(ctx context.Context, client redis.UniversalClient, seal *Seal, namespace verify.Namespace, of *image.Reference, limit int) (Listing, error) {
	var mu sync.Mutex
	var found Listing
	err := eachNode(ctx, client, func(ctx context.Context, node redis.Cmdable) error {
		return scan(ctx, node, keyPrefix(namespace)+"*", func(names []string) error {
			for batch := range slices.Chunk(names, showBatch) {
				values, err := readValues(ctx, node, batch)
				if err != nil {
					return err
				}
				mu.Lock()
				for i, name := range batch {
					if values[i] != "" { // else it expired meanwhile
						found.add(shownOf(seal, namespace, name, []byte(values[i])), of, limit)
					}
				}
				mu.Unlock()
			}
			return nil
		})
	})
	slices.SortFunc(found.Entries, func(a, b Shown) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), b.Written.Compare(a.Written), strings.Compare(a.UID, b.UID))
	})
	return found, err
}

// readValues returns the beginning of each value: whoever wrote it chose its length.
func readValues(ctx context.Context, node redis.Cmdable, names []string) ([]string, error) {
	commands := make([]*redis.StringCmd, len(names))
	if _, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			commands[i] = pipe.GetRange(ctx, name, 0, maxValueBytes)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	values := make([]string, len(names))
	for i, command := range commands {
		values[i] = command.Val()
	}
	return values, nil
}

// shownOf opens one value, with the keys of the UID that its header names: a header that
// lies names keys that do not fit.
func shownOf(seal *Seal, namespace verify.Namespace, name string, value []byte) Shown {
	shown := Shown{Kind: kindOf(name), Verdict: policy.NotDecided(policy.ObjectRef{}, "")}
	uid, err := sealedFor(value)
	if err != nil {
		shown.Unopened = err
		return shown
	}
	wire, expires, err := openWire(seal, scope{namespace, uid}, name, value)
	if err != nil {
		shown.Unopened = err
		return shown
	}
	entry, err := wire.entry()
	if err != nil {
		shown.Unopened = err
		return shown
	}
	shown.Image, shown.UID, shown.Generation, shown.Program = wire.Image, uid, wire.Generation, wire.Program
	shown.Verdict, shown.Written, shown.Expires = entry.Verdict, time.UnixMilli(wire.Written), expires
	return shown
}

// add counts a value, and keeps it if it is wanted and there is room.
func (l *Listing) add(shown Shown, of *image.Reference, limit int) {
	l.Keys++
	switch {
	case shown.Unopened != nil:
		if l.Unopened++; of != nil {
			return
		}
	case of != nil && !isOf(shown.Image, *of):
		return
	}
	if len(l.Entries) >= limit {
		l.LeftOff++
		return
	}
	l.Entries = append(l.Entries, shown)
}

// isOf reports whether a cached image is the one that is asked for: of its repository, and
// with its digest, if it has one.
func isOf(cached string, asked image.Reference) bool {
	ref, err := image.Parse(cached)
	return err == nil && ref.Name() == asked.Name() && (asked.Digest == "" || asked.Digest == ref.Digest)
}

// kindOf returns the kind in a key, for display only.
func kindOf(name string) string {
	if parts := strings.SplitN(name, ":", 4); len(parts) == 4 {
		return parts[2]
	}
	return ""
}
