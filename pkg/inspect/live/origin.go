package live

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// Comparison lists what the repository that an image names has, and its mirrors lack. It is
// for people, and decides nothing.
type Comparison struct {
	// Instead are the locations that are read instead of the origin, for the image and for
	// evidence. If it is empty, there is nothing to compare.
	Instead []string
	Origin  string
	// Mirrored and Original are the digests of the image, each empty with an error.
	Mirrored, Original       digest.Digest
	MirroredErr, OriginalErr error
	// Missing are manifests that refer to the image at the origin but at none of the other
	// locations, and MissingErr says why there may be more.
	Missing    []digest.Digest
	MissingErr error
}

// CompareOrigin looks up an image and its evidence at the namespace's locations, and in the
// image's own repository.
func CompareOrigin(ctx context.Context, snapshot *resolve.Snapshot, namespace verify.Namespace, ref image.Reference) Comparison {
	return compare(ctx, snapshot.For(namespace).Tiers[0].Registry.Locations(ref), snapshot.Origin(namespace).Locations(ref), ref)
}

func compare(ctx context.Context, locations, own verify.Locations, ref image.Reference) Comparison {
	atOrigin := func(l verify.Location) bool { return l.Role == verify.RoleOrigin }
	instead := verify.Locations{Content: slices.DeleteFunc(slices.Clone(locations.Content), atOrigin),
		Evidence: slices.DeleteFunc(slices.Clone(locations.Evidence), atOrigin)}
	c := Comparison{Origin: ref.Name()}
	for _, l := range slices.Concat(instead.Content, instead.Evidence) {
		if !slices.Contains(c.Instead, l.Name) {
			c.Instead = append(c.Instead, l.Name)
		}
	}
	if len(c.Instead) == 0 {
		return c
	}
	if len(instead.Content) == 0 { // only evidence is elsewhere
		instead.Content = own.Content
	}
	var lookups sync.WaitGroup
	lookups.Go(func() { c.Mirrored, c.MirroredErr = digestAt(ctx, instead, ref) })
	lookups.Go(func() { c.Original, c.OriginalErr = digestAt(ctx, own, ref) })
	lookups.Wait()
	subject := ref
	switch {
	case c.MirroredErr == nil:
		subject = ref.WithDigest(c.Mirrored)
	case c.OriginalErr == nil:
		subject = ref.WithDigest(c.Original)
	default:
		return c
	}
	var here, there []digest.Digest
	var hereErr, thereErr error
	lookups.Go(func() { here, hereErr = listedAt(ctx, instead.Evidence, subject) })
	lookups.Go(func() { there, thereErr = listedAt(ctx, own.Evidence, subject) })
	lookups.Wait()
	c.Missing = slices.DeleteFunc(there, func(d digest.Digest) bool { return slices.Contains(here, d) })
	if c.MissingErr = thereErr; thereErr == nil {
		c.MissingErr = hereErr
	}
	return c
}

func digestAt(ctx context.Context, locations verify.Locations, ref image.Reference) (digest.Digest, error) {
	found, err := locations.Resolve(ctx, ref)
	return found.Digest, err
}

// listedAt returns the manifests that refer to subject at locations, and an error if there
// may be more.
func listedAt(ctx context.Context, locations []verify.Location, subject image.Reference) (all []digest.Digest, err error) {
	for _, l := range locations {
		found, failed := l.Referrers(ctx, subject)
		for _, d := range found {
			all = append(all, d.Digest)
		}
		switch {
		case err == nil:
			err = failed
		case failed != nil:
			err = fmt.Errorf("%w; %w", err, failed)
		}
	}
	return all, err
}

// Sentences describes the differences.
func (c Comparison) Sentences() []string {
	if len(c.Instead) == 0 {
		return []string{"no mirror and no evidence repository applies: everything is read at " + c.Origin}
	}
	var said []string
	switch {
	case c.MirroredErr != nil && c.OriginalErr != nil:
		said = append(said, fmt.Sprintf("neither has the image: %v; %v", c.MirroredErr, c.OriginalErr))
	case c.OriginalErr != nil:
		said = append(said, fmt.Sprintf("the origin was not read: %v", c.OriginalErr))
	case verify.HasReason(c.MirroredErr, policy.ReasonNotFound):
		said = append(said, fmt.Sprintf("the origin has the image (%s), and the mirror lacks it", c.Original))
	case c.MirroredErr != nil:
		said = append(said, fmt.Sprintf("the origin has the image (%s), and the mirror was not read: %v", c.Original, c.MirroredErr))
	case c.Mirrored != c.Original:
		said = append(said, fmt.Sprintf("the origin has another image: %s, and the mirror %s", c.Original, c.Mirrored))
	default:
		said = append(said, "the image is the same at the origin: "+c.Original.String())
	}
	switch {
	case c.MissingErr != nil:
		said = append(said, fmt.Sprintf("not all evidence was listed: %v", c.MissingErr))
	case c.MirroredErr != nil && c.OriginalErr != nil:
	case len(c.Missing) == 0:
		said = append(said, "the origin has no evidence that the other repositories lack")
	}
	if n := len(c.Missing); n > 0 {
		said = append(said,
			fmt.Sprintf("the origin has %d signatures or attestations that the other repositories lack; copy them with cosign copy "+
				"or oras cp -r", n))
	}
	return said
}
