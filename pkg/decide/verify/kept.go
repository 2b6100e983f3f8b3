package verify

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Evidence is a registry's evidence about one image. It is independent of rules, so that verdicts need no request
// after a change of rules. Content is addressed by digest and never changes; lists are as of Listed.
type Evidence struct {
	// Listed is when the first list was requested, and Listing what Referrers list, as in [Locations].
	Listed  time.Time
	Listing string
	Subject ocispec.Descriptor // of the image; empty if only an index has described it
	// Lists are the whole lists of referrers, by the name of their location.
	Lists map[string][]ocispec.Descriptor
	// Refused is the generation of the last rules that did not allow the image, or warned about it.
	Refused string
	// Content has manifests and blobs. Together with those in Lists they take at most [maxKept]
	// bytes.
	Content map[digest.Digest][]byte
}

// listBytes returns the size of manifests that lists embed.
func (e *Evidence) listBytes() (n int) {
	for _, list := range e.Lists {
		for _, d := range list {
			n += len(d.Data)
		}
	}
	return n
}

// kept is the evidence about one image at the locations of one registry during the work on it: what the cache had,
// and what the work reads. It is safe for concurrent use. Nil keeps nothing.
type kept struct {
	key   Key
	rules string    // their generation
	began time.Time // of the work

	mu       sync.Mutex
	evidence Evidence
	age      time.Duration // of the used lists; 0 for those that were read now
	stale    bool          // read lists again
	changed  bool
	own      bool                   // Content is not shared with other requests
	used     map[digest.Digest]bool // of Content, by this work
	size     int                    // of Content
}

// keep returns the kept evidence about subject at the locations of registry. It is nil for a registry whose
// Generation is empty.
func (x *examination) keep(ctx context.Context, registry Registry, subject Subject) *kept {
	if registry == nil || registry.Generation() == "" {
		return nil
	}
	k := &kept{key: x.config.evidenceKey(registry, subject.Reference), rules: x.config.generation(), began: x.now(), stale: x.fresh,
		used: map[digest.Digest]bool{}}
	if entry, ok := x.cache.Get(ctx, k.key); ok && entry.Evidence != nil {
		k.evidence = *entry.Evidence
		for _, content := range k.evidence.Content {
			k.size += len(content)
		}
	}
	return k
}

// keepAll calls keep for all registries of searches. Registries with the same key share it.
func (x *examination) keepAll(ctx context.Context, groups map[searchGroup][]*Verifier, subject Subject) map[Registry]*kept {
	var mu sync.Mutex
	var all sync.WaitGroup
	keeps, byKey := map[Registry]*kept{}, map[string]*kept{}
	asked := map[Registry]bool{}
	for group := range groups {
		if asked[group.registry] {
			continue
		}
		asked[group.registry] = true
		all.Go(func() {
			defer func() { _ = recover() }() // without kept evidence, everything is read
			k := x.keep(ctx, group.registry, subject)
			if k == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if known := byKey[k.key.Generation]; known != nil {
				k = known
			} else {
				byKey[k.key.Generation] = k
				x.keeper.add(k)
			}
			keeps[group.registry] = k
		})
	}
	all.Wait()
	return keeps
}

// lists returns the lists of all locations, and the descriptor of the image, if they are complete and recent enough:
// allows and denies are the maximum ages of a verdict. An image that an index describes needs no descriptor.
func (k *kept) lists(locations Locations, stated bool, allows,
	denies time.Duration) (lists [][]ocispec.Descriptor, subject ocispec.Descriptor, ok bool) {
	if k == nil {
		return nil, ocispec.Descriptor{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.began.Sub(k.evidence.Listed)
	if k.evidence.Refused == k.rules { // older lists would not allow it either
		allows = denies
	}
	if k.stale || age < 0 || age >= allows || k.evidence.Listing != locations.Listing || !stated && k.evidence.Subject.MediaType == "" {
		return nil, ocispec.Descriptor{}, false
	}
	for _, location := range locations.Evidence {
		list, ok := k.evidence.Lists[location.Name]
		if !ok {
			return nil, ocispec.Descriptor{}, false
		}
		lists = append(lists, list)
	}
	k.age = age
	return lists, k.evidence.Subject, true
}

// listed keeps the lists of all locations, which are complete.
func (k *kept) listed(locations Locations, lists [][]ocispec.Descriptor, subject ocispec.Descriptor) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.evidence.Listed, k.evidence.Listing, k.evidence.Subject = k.began, locations.Listing, subject
	k.evidence.Lists = make(map[string][]ocispec.Descriptor, len(lists))
	for i, location := range locations.Evidence {
		k.evidence.Lists[location.Name] = lists[i]
	}
	k.changed = true
}

// content returns the content of a descriptor if it is kept.
func (k *kept) content(desc ocispec.Descriptor) ([]byte, bool) {
	if k == nil {
		return nil, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	content, ok := k.evidence.Content[desc.Digest]
	if !ok || int64(len(content)) != desc.Size {
		return nil, false
	}
	k.used[desc.Digest] = true
	return content, true
}

// add keeps content that was read. It may replace content that this work has not used.
func (k *kept) add(of digest.Digest, content []byte) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.evidence.Content[of]; known {
		return
	}
	if !k.own {
		if k.own, k.evidence.Content = true, maps.Clone(k.evidence.Content); k.evidence.Content == nil {
			k.evidence.Content = map[digest.Digest][]byte{}
		}
	}
	full := func() bool { return len(k.evidence.Content) >= maxKeptPieces || k.size+len(content) > maxKept }
	if full() {
		maps.DeleteFunc(k.evidence.Content, func(other digest.Digest, content []byte) bool {
			if !k.used[other] {
				k.size -= len(content)
			}
			return !k.used[other]
		})
	}
	if full() {
		return
	}
	k.evidence.Content[of], k.used[of], k.changed = content, true, true
	k.size += len(content)
}

// save writes new content to the cache. The work has ended; allowed says whether the image was allowed without a
// warning.
func (k *kept) save(ctx context.Context, cache Cache, allowed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	evidence := k.evidence
	switch {
	case !allowed:
		evidence.Refused = k.rules
	case evidence.Refused == k.rules:
		evidence.Refused = ""
	}
	// An image may be allowed before every list has arrived. Its content is worth keeping.
	if !k.changed && evidence.Refused == k.evidence.Refused || evidence.Lists == nil && !allowed {
		return
	}
	// Work with other rules may have read the lists again meanwhile.
	if entry, ok := cache.Recall(k.key); ok && entry.Evidence != nil && entry.Evidence.Listed.After(evidence.Listed) {
		newer := entry.Evidence
		evidence.Listed, evidence.Listing, evidence.Subject, evidence.Lists = newer.Listed, newer.Listing, newer.Subject, newer.Lists
	}
	if k.size+evidence.listBytes() <= maxKept {
		cache.Put(ctx, k.key, Entry{Evidence: &evidence}, keptFor)
	}
}

// keeper has the kept evidence for the work on one image and, if it is an index, on its
// manifests.
type keeper struct {
	mu   sync.Mutex
	kept []*kept
}

func (k *keeper) add(one *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, one)
}

// age returns the age of the oldest kept list that was used.
func (k *keeper) age() (oldest time.Duration) {
	for _, one := range k.kept {
		oldest = max(oldest, one.age)
	}
	return oldest
}

func (k *keeper) save(ctx context.Context, cache Cache, allowed bool) {
	for _, one := range k.kept {
		one.save(ctx, cache, allowed)
	}
}

// evidenceKey returns the cache key of what a registry holds about a reference with a digest.
func (p part) evidenceKey(registry Registry, ref image.Reference) Key {
	return Key{Namespace: p.Namespace, Kind: KindEvidence, UID: p.UID, Generation: registry.Generation(),
		Image: ref.Name() + "@" + ref.Digest.String()}
}
