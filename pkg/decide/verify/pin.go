package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// pin returns ref with its digest, and a warning if policies that only warn would have it
// be another. The digest of a tag is cached briefly. The descriptor of a digest reference
// is read later, in parallel with other requests.
//
// A layer whose locations are others, such as a mandatory policy where the namespace has a mirror, must
// find the same digest under the tag: else it would be asked about a digest that only a
// tenant's mirror calls by that tag. Without such a mirror all layers ask the same server,
// once.
func (e *Engine) pin(ctx context.Context, config *Config, tasks []task, ref image.Reference, how mode, trace *trace) (subject Subject, doubt string, err error) {
	registry := registryOf(tasks)
	if ref.Digest != "" {
		return Subject{Reference: ref}, "", nil
	}
	others := elsewhere(tasks, registry, ref)
	key := config.tagKey(ref)
	entry, cached := e.known(ctx, key, how)
	if !cached {
		entry, err = e.once(ctx, config, key, how, func(ctx context.Context) (Entry, time.Duration, error) {
			defer trace.start("resolve", ref.String())()
			descriptor, doubt, err := agree(ctx, registry, others, ref)
			ttl := e.options.TagTTL
			if doubt != "" { // the next request has to warn, too
				ttl = 0
			}
			return Entry{Descriptor: descriptor, Verdict: policy.Verdict{Warning: doubt}}, ttl, err
		})
		if err != nil {
			return Subject{}, "", err
		}
	}
	return Subject{Reference: ref.WithDigest(entry.Descriptor.Digest), Descriptor: entry.Descriptor, describedBy: registry}, entry.Verdict.Warning, nil
}

// elsewhere returns the tasks whose layers read ref at other locations than registry does, one
// of each registry, those that are enforced first.
func elsewhere(tasks []task, registry Registry, ref image.Reference) []task {
	var others []task
	for _, warns := range []bool{false, true} {
		for _, t := range tasks {
			if !t.known && t.warns == warns && !sameContent(t.layer.Registry, registry, ref) &&
				!slices.ContainsFunc(others, func(o task) bool { return o.layer.Registry == t.layer.Registry }) {
				others = append(others, t)
			}
		}
	}
	return others
}

// agree looks up a tag with registry and, in parallel, with those of other layers. It fails
// if an enforced one does not find the same digest.
func agree(ctx context.Context, registry Registry, others []task, ref image.Reference) (descriptor ocispec.Descriptor, doubt string, err error) {
	digests, errs := make([]digest.Digest, len(others)), make([]error, len(others))
	var lookups sync.WaitGroup
	for i, other := range others {
		lookups.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fmt.Errorf("internal error: %v", r)
				}
			}()
			found, err := resolve(ctx, locationsOf(other.layer.Registry, ref).Content, ref)
			digests[i], errs[i] = found.Digest, err
		})
	}
	locations := locationsOf(registry, ref).Content
	descriptor, err = resolve(ctx, locations, ref)
	lookups.Wait()
	if err != nil {
		return ocispec.Descriptor{}, "", err
	}
	for i, other := range others {
		err := errs[i]
		if err == nil && digests[i] != descriptor.Digest {
			err = PermanentWith(policy.ReasonContentMismatch, fmt.Errorf("%s is %s at %s, and %s at %s, which counts for %s",
				ref, descriptor.Digest, names(locations), digests[i], names(locationsOf(other.layer.Registry, ref).Content), other.layer.Source),
				"update the copy that is behind, or name the image by its digest")
		}
		switch {
		case err == nil:
		case other.warns:
			doubt = other.layer.Source.String() + " would not be asked about this image: " + err.Error()
		default:
			return ocispec.Descriptor{}, "", err
		}
	}
	return descriptor, doubt, nil
}

// Resolve pins ref to the current digest of its tag, with the credentials of config. It
// returns a reference with a digest unchanged, without a network call. The error is a
// [PermanentError] if the image does not exist, and otherwise transient. Mandatory policies are not
// asked: they judge the digest once it is verified.
func (e *Engine) Resolve(ctx context.Context, config *Config, ref image.Reference) (image.Reference, error) {
	if ref.Digest != "" {
		return ref, nil
	}
	if len(config.Layers) == 0 {
		return image.Reference{}, fmt.Errorf("cannot look up %s: no resources are loaded for %s", ref, config.Namespace.Describe())
	}
	registry, key := config.Layers[0].Registry, config.tagKey(ref)
	if slices.ContainsFunc(config.Layers, func(l Layer) bool { return !sameContent(l.Registry, registry, ref) }) {
		key = config.ownTagKey(ref)
	}
	entry, cached := e.known(ctx, key, mode{})
	if !cached {
		var err error
		entry, err = e.once(ctx, config, key, mode{}, func(ctx context.Context) (Entry, time.Duration, error) {
			descriptor, err := resolve(ctx, locationsOf(registry, ref).Content, ref)
			return Entry{Descriptor: descriptor}, e.options.TagTTL, err
		})
		if err != nil {
			return image.Reference{}, err
		}
	}
	return ref.WithDigest(entry.Descriptor.Digest), nil
}
