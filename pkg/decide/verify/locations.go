package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Registry finds the locations of images, with one tenant's credentials.
type Registry interface {
	// Locations returns the locations of the image of ref and of evidence about it. It makes no
	// request, and depends on the name of ref alone.
	Locations(ref image.Reference) Locations
	// Generation is a hash of everything that determines the answers: the locations and the
	// logins. Evidence that was read under another one is not used. With "", nothing is kept.
	Generation() string
}

// Locations are the repositories that are read for one image.
type Locations struct {
	// Content may have the image; the first location that has it counts. If there is none,
	// nothing is known about the image.
	Content []Location
	// Evidence may have manifests that refer to the image; all of them count.
	Evidence []Location
	// Listing says what their Referrers list, such as cosign's attestation tag.
	Listing string
}

// Location is one repository of a [Registry].
type Location struct {
	Name string // host/repository
	Role Role
	Repository
}

// Role says why a location is read.
type Role string

// The roles.
const (
	RoleOrigin   Role = "origin"   // the repository that the image names
	RoleMirror   Role = "mirror"   // a copy of it
	RoleEvidence Role = "evidence" // further evidence
)

// Repository reads one repository. Every method verifies content against the requested
// digest, reads at most a limit, and returns a [PermanentError] if a retry would give the
// same answer. Every other error is transient.
type Repository interface {
	// Resolve returns the descriptor (digest, size, media type) of the manifest that
	// ref names; a digest in ref takes precedence over its tag.
	Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error)

	// Referrers returns the descriptors of the manifests that may hold evidence for subject
	// (which has a digest): the cosign signature tag first, then OCI referrers in the registry's
	// order, each digest once. A descriptor may embed its content in Data. If it returns both
	// descriptors and an error, there may be more evidence than listed.
	Referrers(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error)

	// Fetch returns the content of desc. It fails with a [PermanentError] if desc.Size is
	// over limit, in bytes.
	Fetch(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
}

// locationsOf returns the locations of ref, none without a registry.
func locationsOf(registry Registry, ref image.Reference) Locations {
	if registry == nil {
		return Locations{}
	}
	return registry.Locations(ref)
}

// sameContent reports whether two registries read the image of ref at the same locations.
func sameContent(x, y Registry, ref image.Reference) bool {
	if x == y {
		return true
	}
	return slices.EqualFunc(locationsOf(x, ref).Content, locationsOf(y, ref).Content, func(a, b Location) bool { return a.Name == b.Name })
}

// names joins the names of locations.
func names(locations []Location) string {
	list := make([]string, len(locations))
	for i, p := range locations {
		list[i] = p.Name
	}
	return strings.Join(list, " and ")
}

// Resolve returns the descriptor of ref at the first location of its content that has it. All are
// asked in parallel, so that a mirror which lacks the image costs no further round trip. A
// location that fails, or that answers with another digest, counts as one that lacks it: content
// cannot be forged for a digest, and the verdict on a tag is about the digest that was found.
// Resolve does not wait for a slow location if another one has the digest.
func (l Locations) Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	locations := l.Content
	switch len(locations) {
	case 0:
		return ocispec.Descriptor{}, Permanent(policy.ReasonNoRegistry, fmt.Errorf("cannot look up %s: no registry is configured", ref))
	case 1:
		return resolveAt(ctx, locations[0], ref)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		at         int
		descriptor ocispec.Descriptor
		err        error
	}
	answers := make(chan answer, len(locations))
	for at, location := range locations {
		go func() {
			a := answer{at: at}
			defer func() {
				if r := recover(); r != nil {
					a.err = fmt.Errorf("internal error: %v", r)
				}
				answers <- a
			}()
			a.descriptor, a.err = resolveAt(ctx, location, ref)
		}()
	}
	var slow <-chan time.Time
	if ref.Digest != "" { // a tag may be another digest elsewhere
		slow = time.After(patience)
	}
	have, errs := make([]*answer, len(locations)), make([]error, 0, len(locations))
	for late := false; ; {
		errs = errs[:0]
		for _, a := range have {
			if a == nil && !late {
				break // it ends with its context
			}
			if a != nil && a.err == nil {
				return a.descriptor, nil
			}
			if a != nil {
				errs = append(errs, a.err)
			}
		}
		if len(errs) == len(locations) {
			return ocispec.Descriptor{}, nowhere(errs)
		}
		select {
		case a := <-answers:
			have[a.at] = &a
		case <-slow:
			late = true
		}
	}
}

// resolveAt is Resolve for one location. It rejects digests that are not sha256 or differ from
// the digest of ref.
func resolveAt(ctx context.Context, location Location, ref image.Reference) (ocispec.Descriptor, error) {
	descriptor, err := location.Resolve(ctx, ref)
	switch {
	case err != nil:
		return ocispec.Descriptor{}, err
	case descriptor.Digest.Validate() != nil || descriptor.Digest.Algorithm() != digest.SHA256:
		return ocispec.Descriptor{},
			Permanent(policy.ReasonContentMismatch, fmt.Errorf("cannot look up %s: %s gave no sha256 digest", ref, location.Name))
	case ref.Digest != "" && descriptor.Digest != ref.Digest:
		return ocispec.Descriptor{},
			Permanent(policy.ReasonContentMismatch, fmt.Errorf("cannot look up %s: %s answered for %s", ref, location.Name, descriptor.Digest))
	}
	traceOf(ctx).answerNow()
	return descriptor, nil
}

// fetchAt reads content from the first location that serves it.
func fetchAt(ctx context.Context, locations []Location, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	var errs []error
	for _, location := range locations {
		content, err := location.Fetch(ctx, desc, limit)
		if err == nil {
			return content, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nowhere(errs)
}

// nowhere returns one error for locations that all failed. It is permanent only if all errors
// are: content that one location lacks, another may have once it answers. Any other permanent
// error explains more than a missing image.
func nowhere(errs []error) error {
	switch len(errs) {
	case 0:
		return Permanent(policy.ReasonNoRegistry, errors.New("no registry is configured"))
	case 1:
		return errs[0]
	}
	texts := make([]string, len(errs))
	var told *PermanentError
	lasting := true
	for i, err := range errs {
		texts[i] = err.Error()
		var permanent *PermanentError
		switch {
		case !errors.As(err, &permanent):
			lasting = false
		case told == nil || told.Reason == policy.ReasonNotFound && permanent.Reason != policy.ReasonNotFound:
			told = permanent
		}
	}
	all := errors.New(strings.Join(texts, "; "))
	if !lasting {
		var known *mended
		if errors.As(errors.Join(errs...), &known) {
			return Mended(all, known.remedy, known.host)
		}
		return all
	}
	return PermanentWith(told.Reason, all, told.Remediation)
}

// pin returns ref with its digest, and a warning if policies that only warn resolve another
// digest. The digest of a tag is cached briefly. The descriptor of a digest reference is read
// later, in parallel with other requests.
//
// A tier with other locations, such as a mandatory policy where the namespace has a mirror, must find
// the same digest for the tag: otherwise it would judge a digest that only a tenant's mirror has under
// that tag. Without such a mirror all tiers ask the same server, once.
func (e *Engine) pin(ctx context.Context, config part, tasks []task, ref image.Reference, how mode,
	trace *trace) (subject Subject, doubt string, err error) {
	registry := registryOf(tasks)
	if ref.Digest != "" {
		return Subject{Reference: ref}, "", nil
	}
	others := elsewhere(tasks, registry, ref)
	key := config.tagKey(ref)
	entry, cached := e.known(ctx, key, how)
	if !cached {
		entry, err = e.once(ctx, config.Config, key, how, func(ctx context.Context) (Entry, time.Duration, error) {
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
	return Subject{Reference: ref.WithDigest(entry.Descriptor.Digest), Descriptor: entry.Descriptor, describedBy: registry},
		entry.Verdict.Warning, nil
}

// elsewhere returns the tasks whose tiers read ref at other locations than registry does, one
// for each registry, enforced ones first.
func elsewhere(tasks []task, registry Registry, ref image.Reference) []task {
	var others []task
	for _, warns := range []bool{false, true} {
		for _, t := range tasks {
			if !t.known && t.warns == warns && !sameContent(t.tier.Registry, registry, ref) &&
				!slices.ContainsFunc(others, func(o task) bool { return o.tier.Registry == t.tier.Registry }) {
				others = append(others, t)
			}
		}
	}
	return others
}

// agree looks up a tag with registry and, in parallel, with the registries of other tiers. It
// fails if an enforced one does not find the same digest.
func agree(ctx context.Context, registry Registry, others []task,
	ref image.Reference) (descriptor ocispec.Descriptor, doubt string, err error) {
	digests, errs := make([]digest.Digest, len(others)), make([]error, len(others))
	var lookups sync.WaitGroup
	for i, other := range others {
		lookups.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fmt.Errorf("internal error: %v", r)
				}
			}()
			found, err := locationsOf(other.tier.Registry, ref).Resolve(ctx, ref)
			digests[i], errs[i] = found.Digest, err
		})
	}
	locations := locationsOf(registry, ref)
	descriptor, err = locations.Resolve(ctx, ref)
	lookups.Wait()
	if err != nil {
		return ocispec.Descriptor{}, "", err
	}
	for i, other := range others {
		err := errs[i]
		if err == nil && digests[i] != descriptor.Digest {
			err = PermanentWith(policy.ReasonContentMismatch, fmt.Errorf("%s is %s at %s, and %s at %s, which counts for %s",
				ref, descriptor.Digest, names(locations.Content), digests[i], names(locationsOf(other.tier.Registry, ref).Content), other.tier.Source),
				"update the copy that is behind, or name the image by its digest")
		}
		switch {
		case err == nil:
		case other.warns:
			doubt = other.tier.Source.String() + " would not be asked about this image: " + err.Error()
		default:
			return ocispec.Descriptor{}, "", err
		}
	}
	return descriptor, doubt, nil
}

// Resolve pins ref to the current digest of its tag, with the credentials of config. It returns a
// reference with a digest unchanged, without a network call. The error is a [PermanentError] if the
// image does not exist, and otherwise transient. It ignores mandatory policies: they judge the
// digest during verification.
func (e *Engine) Resolve(ctx context.Context, config *Config, ref image.Reference) (image.Reference, error) {
	if ref.Digest != "" {
		return ref, nil
	}
	if len(config.Tiers) == 0 {
		return image.Reference{}, fmt.Errorf("cannot look up %s: no resources are loaded for %s", ref, config.Namespace.Describe())
	}
	registry, key := config.Tiers[0].Registry, config.all().tagKey(ref)
	if slices.ContainsFunc(config.Tiers, func(l Tier) bool { return !sameContent(l.Registry, registry, ref) }) {
		key.Image += " not compared" // only the first tier is asked; no reference has a space
	}
	entry, cached := e.known(ctx, key, mode{})
	if !cached {
		var err error
		ctx = (&trace{now: e.now}).in(ctx)
		entry, err = e.once(ctx, config, key, mode{}, func(ctx context.Context) (Entry, time.Duration, error) {
			descriptor, err := locationsOf(registry, ref).Resolve(ctx, ref)
			return Entry{Descriptor: descriptor}, e.options.TagTTL, err
		})
		if err != nil {
			return image.Reference{}, err
		}
	}
	return ref.WithDigest(entry.Descriptor.Digest), nil
}
