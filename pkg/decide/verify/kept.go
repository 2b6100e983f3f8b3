package verify

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Evidence is what a registry held about one image. It is kept apart from what rules make of it, so that after a
// change of rules verdicts need no request. Content is what its digest says for ever; lists are as of Listed.
type Evidence struct {
	// Listed is when the first list was asked for, and Listing what Referrers listed, as in [Locations].
	Listed  time.Time
	Listing string
	Subject ocispec.Descriptor // of the image
	// Lists are the whole lists of referrers, by the name of their location.
	Lists map[string][]ocispec.Descriptor
	// Content are manifests and blobs, at most [maxKept] bytes of them.
	Content map[digest.Digest][]byte
}

// kept is the evidence about one image at the locations of one registry, during the work on it: what the cache had, and
// what is read now. It is safe for concurrent use. Nil keeps nothing.
type kept struct {
	key   Key
	began time.Time // of the work

	mu       sync.Mutex
	evidence Evidence
	age      time.Duration // of the lists that were used; 0 for those that were read now
	stale    bool          // lists are read again
	changed  bool
	size     int
}

// keep returns what is kept of the evidence about subject at the locations of registry. It is nil for a registry that
// does not say what its answers depend on.
func (x *examination) keep(ctx context.Context, registry Registry, subject Subject) *kept {
	if registry == nil || registry.Generation() == "" {
		return nil
	}
	k := &kept{key: x.config.evidenceKey(registry, subject.Reference), began: x.now(), stale: x.fresh}
	if entry, ok := x.cache.Get(ctx, k.key); ok && entry.Evidence != nil {
		k.evidence = *entry.Evidence
		for _, content := range k.evidence.Content {
			k.size += len(content)
		}
	}
	return k
}

// lists returns the lists of all locations, and the descriptor of the image, if they are kept whole and younger than
// any verdict may be.
func (k *kept) lists(locations Locations, most time.Duration) (lists [][]ocispec.Descriptor, subject ocispec.Descriptor, ok bool) {
	if k == nil {
		return nil, ocispec.Descriptor{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.began.Sub(k.evidence.Listed)
	if k.stale || age < 0 || age >= most || k.evidence.Listing != locations.Listing {
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

// listed keeps the lists of all locations, which are whole.
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
	return content, ok && int64(len(content)) == desc.Size
}

// add keeps content that was read, unless there is too much of it.
func (k *kept) add(of digest.Digest, content []byte) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.evidence.Content[of]; known || k.size+len(content) > maxKept {
		return
	}
	if k.evidence.Content = maps.Clone(k.evidence.Content); k.evidence.Content == nil { // other requests share what the cache had
		k.evidence.Content = map[digest.Digest][]byte{}
	}
	k.evidence.Content[of] = content
	k.size += len(content)
	k.changed = true
}

// save puts what is new into the cache.
func (x *examination) save(ctx context.Context, k *kept) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	x.oldest(k.age)
	if k.changed && k.evidence.Lists != nil {
		evidence := k.evidence
		x.cache.Put(ctx, k.key, Entry{Evidence: &evidence}, keptFor)
	}
}

// oldest notes the age of lists that were used.
func (x *examination) oldest(age time.Duration) {
	for {
		known := x.age.Load()
		if int64(age) <= known || x.age.CompareAndSwap(known, int64(age)) {
			return
		}
	}
}

// evidenceKey returns the cache key of what a registry holds about a reference with a digest.
func (p part) evidenceKey(registry Registry, ref image.Reference) Key {
	return Key{Namespace: p.Namespace, Kind: KindEvidence, UID: p.UID, Generation: registry.Generation(), Image: ref.Name() + "@" + ref.Digest.String()}
}

// registries returns each registry of searches once.
func registries(groups map[searchGroup][]*Verifier) (all []Registry) {
	for group := range groups {
		if !slices.Contains(all, group.registry) {
			all = append(all, group.registry)
		}
	}
	return all
}
