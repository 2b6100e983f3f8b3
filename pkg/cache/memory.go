// Package cache keeps verification results for a time. It keeps only what it is
// given, under the whole of the key, and forgets at will: a result that is not
// there is worked out again. It refuses to answer with anything that has
// expired, and knows no namespace but the key's.
package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// DefaultMemoryBytes is the size of a [Memory] cache for some 20,000 verdicts.
const DefaultMemoryBytes = 64 << 20

// Memory is a [verify.Cache] in this process, bounded in bytes, of which one
// namespace takes an eighth at most; the entries least likely to be used again make
// room. It is safe for concurrent use, and reads never wait for each other.
type Memory struct {
	entries *otter.Cache[verify.Key, timed]
	shares  *shares
	now     func() time.Time
	size    int64
	percent func(verify.Namespace) int
}

// shareOf is the part of the memory that one namespace may take.
const shareOf = 8

var _ verify.Cache = (*Memory)(nil)

// timed is an entry and the time from which it no longer counts.
type timed struct {
	entry   verify.Entry
	expires time.Time
}

// NewMemory returns a cache of about maxBytes, which must be positive, that
// reads the time from now.
func NewMemory(maxBytes int64, now func() time.Time) (*Memory, error) {
	if maxBytes < 1 {
		return nil, fmt.Errorf("the memory cache needs a size of at least 1 byte, not %d", maxBytes)
	}
	m := &Memory{shares: newShares(), now: now, size: maxBytes, percent: func(verify.Namespace) int { return 0 }}
	var err error
	m.entries, err = otter.New(&otter.Options[verify.Key, timed]{
		MaximumWeight: uint64(maxBytes),
		Weigher:       func(key verify.Key, value timed) uint32 { return weigh(key, value.entry) },
		OnAtomicDeletion: func(e otter.DeletionEvent[verify.Key, timed]) {
			if e.Cause != otter.CauseReplacement {
				m.shares.remove(e.Key)
			}
		},
		// Expired entries leave by themselves; Get still checks, because the time
		// it is given decides, not the library's clock.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[verify.Key, timed]) time.Duration {
			return max(e.Value.expires.Sub(now()), time.Nanosecond)
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("make the memory cache: %w", err)
	}
	return m, nil
}

// Shares gives namespaces another part of the memory than an eighth, in percent;
// those for which percent returns 0 keep it. It is called before the first use.
func (m *Memory) Shares(percent func(verify.Namespace) int) { m.percent = percent }

// share is how many bytes a namespace may take.
func (m *Memory) share(namespace verify.Namespace) int64 {
	if percent := m.percent(namespace); percent > 0 {
		return max(m.size*int64(percent)/100, 1)
	}
	return max(m.size/shareOf, 1)
}

// Get returns the entry for key if it is there and has not expired.
func (m *Memory) Get(_ context.Context, key verify.Key) (verify.Entry, bool) { return m.Recall(key) }

// Recall is Get, which waits for nothing here.
func (m *Memory) Recall(key verify.Key) (verify.Entry, bool) {
	value, ok := m.entries.GetIfPresent(key)
	if !ok || !m.now().Before(value.expires) {
		return verify.Entry{}, false
	}
	return value.entry, true
}

// Put keeps entry for ttl, unless there is no room. Undecided is the caller's
// to leave out; a ttl that is not positive keeps nothing.
func (m *Memory) Put(_ context.Context, key verify.Key, entry verify.Entry, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	weight := int64(weigh(key, entry))
	each := m.share(key.Namespace)
	if weight > each {
		return // it would leave room for nothing else
	}
	for _, oldest := range m.shares.add(key, weight, each) {
		m.entries.Invalidate(oldest)
	}
	m.entries.Set(key, timed{entry: entry, expires: m.now().Add(ttl)})
}

// Forget drops everything of a namespace. It takes time in proportion to all
// that is kept.
func (m *Memory) Forget(namespace verify.Namespace) {
	for key := range m.entries.Keys() {
		if key.Namespace == namespace {
			m.entries.Invalidate(key)
		}
	}
}

// weigh estimates what an entry occupies, in bytes: its strings, and a fixed
// sum for the structures around them.
func weigh(key verify.Key, entry verify.Entry) uint32 {
	const structure, perFinding = 512, 320
	n := structure + len(key.Namespace) + len(key.UID) + len(key.Generation) + len(key.Image) +
		len(entry.Verdict.Reason) + len(entry.Verdict.Warning) + len(entry.Descriptor.Data)
	for _, f := range entry.Findings {
		n += perFinding + len(f.Message) + len(f.Remediation) + len(f.Signer) + len(f.Digest)
		n += weighValue(f.Extensions)
	}
	return uint32(min(n, 1<<30))
}

// weighValue estimates what the facts of a finding occupy; those of a keyless
// signer nest.
func weighValue(value any) int {
	const perEntry = 64
	n := perEntry
	switch value := value.(type) {
	case string:
		n += len(value)
	case map[string]any:
		for name, inner := range value {
			n += len(name) + weighValue(inner)
		}
	case []any:
		for _, inner := range value {
			n += weighValue(inner)
		}
	case []map[string]any:
		for _, inner := range value {
			n += weighValue(inner)
		}
	}
	return n
}
