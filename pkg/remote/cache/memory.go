// Package cache keeps verification results for a time, under their whole key, and may drop
// any of them: a missing result is computed again. It never returns an expired result, or one
// that was stored under another key.
package cache

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Memory is a [verify.Cache] in this process, bounded in bytes. One account may use an eighth
// of them. It evicts the entries that are least likely to be used again. It is safe for
// concurrent use, and reads take no lock.
type Memory struct {
	stats   memoryStats
	entries entries
	shares  *shares
	now     func() time.Time
	size    int64
	shareOf func(verify.Namespace) Share
}

// entries is a cache of otter. Every package that sees a type of otter compiles all of its
// methods again, for a second or more, so no field has such a type.
type entries interface {
	GetIfPresent(key verify.Key) (timed, bool)
	Set(key verify.Key, value timed) (timed, bool)
	Invalidate(key verify.Key) (timed, bool)
	Keys() iter.Seq[verify.Key]
}

// Share defines the part of the memory that a namespace's entries may use.
type Share struct {
	// Account is charged for them; empty means the namespace's own account.
	Account verify.Account
	// Percent is the part of the memory that the account may use; 0 is an eighth.
	Percent int
}

var _ verify.Cache = (*Memory)(nil)

// timed is an entry with its expiry, the account that it is charged to, and its weight.
type timed struct {
	entry   verify.Entry
	expires time.Time
	account verify.Account
	weight  uint32
}

// NewMemory returns a cache of about maxBytes, which must be positive. It reads the time
// from now.
func NewMemory(maxBytes int64, now func() time.Time) (*Memory, error) {
	if maxBytes < 1 {
		return nil, fmt.Errorf("the memory cache needs a size of at least 1 byte, not %d", maxBytes)
	}
	m := &Memory{shares: &shares{of: map[verify.Account]*share{}}, now: now, size: maxBytes,
		shareOf: func(verify.Namespace) Share { return Share{} }}
	var err error
	m.entries, err = otter.New(&otter.Options[verify.Key, timed]{
		MaximumWeight: uint64(maxBytes),
		Weigher:       func(_ verify.Key, value timed) uint32 { return value.weight },
		OnAtomicDeletion: func(e otter.DeletionEvent[verify.Key, timed]) {
			m.stats.of(e.Key.Kind).left(e.Value.weight, e.Cause == otter.CauseOverflow)
			if e.Cause != otter.CauseReplacement {
				m.shares.remove(e.Value.account, e.Key)
			}
		},
		// The library evicts expired entries by its own clock. Get still checks, because
		// the injected clock is authoritative.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[verify.Key, timed]) time.Duration {
			return max(e.Value.expires.Sub(now()), time.Nanosecond)
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("make the memory cache: %w", err)
	}
	return m, nil
}

// Shares sets the function that returns the share of a namespace. Without it, every namespace
// has its own account. Call it before the first use.
func (m *Memory) Shares(of func(verify.Namespace) Share) { m.shareOf = of }

// share returns the account of a namespace, and the bytes that it may use.
func (m *Memory) share(namespace verify.Namespace) (account verify.Account, bytes int64) {
	share := m.shareOf(namespace)
	account = cmp.Or(share.Account, namespace.Account())
	if share.Percent > 0 {
		return account, max(m.size*int64(share.Percent)/100, 1)
	}
	return account, max(m.size/defaultParts, 1)
}

// Get returns the entry for key unless it is missing or expired.
func (m *Memory) Get(_ context.Context, key verify.Key) (verify.Entry, bool) {
	entry, ok := m.Recall(key)
	if !ok {
		m.stats.of(key.Kind).Misses.Add(1)
	}
	return entry, ok
}

// Recall is Get, which never waits here. It counts no miss, because callers then use Get.
func (m *Memory) Recall(key verify.Key) (verify.Entry, bool) {
	value, ok := m.entries.GetIfPresent(key)
	if !ok || !m.now().Before(value.expires) {
		return verify.Entry{}, false
	}
	m.stats.of(key.Kind).Hits.Add(1)
	return value.entry, true
}

// Put stores entry for ttl, unless it exceeds the account's share or ttl is not positive.
// Callers must not put Undecided verdicts.
func (m *Memory) Put(_ context.Context, key verify.Key, entry verify.Entry, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	weight := weigh(key, entry)
	account, most := m.share(key.Namespace)
	if int64(weight) > most {
		return // it would leave no room for other entries
	}
	m.stats.of(key.Kind).entered(weight)
	before, added := m.entries.Set(key, timed{entry: entry, expires: m.now().Add(ttl), account: account, weight: weight})
	if !added && before.account != account {
		m.shares.remove(before.account, key) // the namespace has another account now
	}
	// Charge after Set: it may report that an expired entry with this key has left.
	for _, oldest := range m.shares.add(account, key, int64(weight), most) {
		m.stats.of(oldest.Kind).OverShare.Add(1)
		m.entries.Invalidate(oldest)
	}
}

// Forget drops all entries of a namespace. It scans the whole cache.
func (m *Memory) Forget(namespace verify.Namespace) {
	for key := range m.entries.Keys() {
		if key.Namespace == namespace {
			m.entries.Invalidate(key)
		}
	}
}

// weigh estimates the size of an entry in bytes: its strings, most of which strangers write,
// and a fixed size for the structures around them.
func weigh(key verify.Key, entry verify.Entry) uint32 {
	const structure, perObjection, perFinding = 832, 112, 400
	v := &entry.Verdict
	n := structure + len(key.Namespace) + len(key.Kind) + len(key.UID) + len(key.Generation) + len(key.Image) +
		len(v.Reason) + len(v.Cause) + len(v.Remedy) + len(v.Remediation) + len(v.Command) + len(v.Contact) + len(v.Warning) + weighRef(v.Policy)
	for _, d := range v.Others {
		n += perObjection + len(d.Reason) + len(d.Remediation) + len(d.Command) + len(d.Contact) + weighRef(d.Policy)
	}
	n += weighDescriptor(entry.Descriptor)
	if entry.Evidence != nil {
		n += weighEvidence(entry.Evidence)
	}
	for _, f := range entry.Findings {
		n += perFinding + len(f.Verifier) + weighRef(f.Source) + len(f.Type) + len(f.Signer()) + len(f.Digest) + len(f.ArtifactType) +
			len(f.Message) + len(f.Reason) + len(f.Remedy) + len(f.Remediation) + len(f.Command) + weighValue(f.Extensions)
	}
	return uint32(max(0, min(n, 1<<30)))
}

// weighEvidence estimates the size of evidence in bytes.
func weighEvidence(e *verify.Evidence) int {
	const perList, perDescriptor, perContent = 128, 256, 128
	n := len(e.Listing) + len(e.Refused) + weighDescriptor(e.Subject)
	for location, list := range e.Lists {
		n += perList + len(location)
		for _, d := range list {
			n += perDescriptor + weighDescriptor(d)
		}
	}
	for of, content := range e.Content {
		n += perContent + len(of) + len(content)
	}
	return n
}

// weighDescriptor estimates the size of a descriptor in addition to its own structure.
func weighDescriptor(d ocispec.Descriptor) int {
	const perAnnotation, perPlatform = 64, 384
	n := len(d.Data) + len(d.MediaType) + len(d.Digest) + len(d.ArtifactType)
	for _, url := range d.URLs {
		n += perAnnotation + len(url)
	}
	for name, value := range d.Annotations {
		n += perAnnotation + len(name) + len(value)
	}
	if p := d.Platform; p != nil {
		n += perPlatform + len(p.Architecture) + len(p.OS) + len(p.OSVersion) + len(p.Variant)
		for _, feature := range p.OSFeatures {
			n += perAnnotation + len(feature)
		}
	}
	return n
}

func weighRef(ref policy.ObjectRef) int { return len(ref.Kind) + len(ref.Namespace) + len(ref.Name) }

// weighValue estimates the size of a finding's facts, which may nest.
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
	default:
		n += len(fmt.Sprint(value)) // facts of another type are small and rare
	}
	return n
}

// shares keeps each account's entries within its share of the memory: an account that keeps
// asking about new images evicts its own oldest entries, not those of others. Reads do not
// take its lock.
type shares struct {
	mu sync.Mutex
	of map[verify.Account]*share
}

// share is the entries of one account.
type share struct {
	bytes int64
	order *list.List // of *charge, the oldest first
	of    map[verify.Key]*list.Element
}

// charge is the size of an entry that its account is charged.
type charge struct {
	key    verify.Key
	weight int64
}

// add charges an entry to an account with a limit of most bytes, and returns the keys to
// evict for it.
func (s *shares) add(account verify.Account, key verify.Key, weight, most int64) (drop []verify.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.of[account]
	if !ok {
		own = &share{order: list.New(), of: map[verify.Key]*list.Element{}}
		s.of[account] = own
	}
	if before, there := own.of[key]; there {
		charged := chargeOf(before)
		own.bytes += weight - charged.weight
		charged.weight = weight
	} else {
		own.of[key] = own.order.PushBack(&charge{key, weight})
		own.bytes += weight
	}
	for own.bytes > most && own.order.Len() > 1 {
		oldest := own.order.Front()
		if chargeOf(oldest).key == key {
			own.order.MoveToBack(oldest) // it was just rewritten
			continue
		}
		drop = append(drop, chargeOf(oldest).key)
		own.drop(oldest)
	}
	return drop
}

// remove discharges an evicted entry.
func (s *shares) remove(account verify.Account, key verify.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[account]
	if own == nil {
		return
	}
	if charged, there := own.of[key]; there {
		own.drop(charged)
	}
	if own.order.Len() == 0 {
		delete(s.of, account)
	}
}

func (s *share) drop(charged *list.Element) {
	s.bytes -= chargeOf(charged).weight
	delete(s.of, chargeOf(charged).key)
	s.order.Remove(charged)
}

func chargeOf(element *list.Element) *charge {
	return element.Value.(*charge) //nolint:forcetypeassert // the list has nothing else
}
