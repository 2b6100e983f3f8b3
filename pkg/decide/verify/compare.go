package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Comparison says what the repository that an image names has, and the locations that are
// read in its stead do not. It is for people, and decides nothing.
type Comparison struct {
	// Instead are the locations that are read in stead of the origin, for the image and for
	// evidence. Without one, there is nothing to compare.
	Instead []string
	Origin  string
	// Mirrored and Original are the digests of the image, each empty with an error.
	Mirrored, Original       digest.Digest
	MirroredErr, OriginalErr error
	// Missing are manifests that refer to the image at the origin and at none of the other
	// locations, and MissingErr says why there may be more.
	Missing    []digest.Digest
	MissingErr error
}

// Compare looks an image and its evidence up at the locations of a registry, and with origin,
// which reads the image's own repository.
func Compare(ctx context.Context, registry, origin Registry, ref image.Reference) Comparison {
	elsewhere := func(locations []Location) []Location {
		return slices.DeleteFunc(slices.Clone(locations), func(p Location) bool { return p.Role == RoleOrigin })
	}
	locations, own := locationsOf(registry, ref), locationsOf(origin, ref)
	content, evidence := elsewhere(locations.Content), elsewhere(locations.Evidence)
	c := Comparison{Origin: ref.Name()}
	for _, p := range append(slices.Clone(content), evidence...) {
		if !slices.Contains(c.Instead, p.Name) {
			c.Instead = append(c.Instead, p.Name)
		}
	}
	if len(c.Instead) == 0 {
		return c
	}
	if len(content) == 0 { // only evidence is elsewhere
		content = own.Content
	}
	var lookups sync.WaitGroup
	for _, lookup := range []func(){
		func() { c.Mirrored, c.MirroredErr = digestAt(ctx, content, ref) },
		func() { c.Original, c.OriginalErr = digestAt(ctx, own.Content, ref) },
	} {
		lookups.Go(lookup)
	}
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
	for _, lookup := range []func(){
		func() { here, hereErr = listedAt(ctx, evidence, subject) },
		func() { there, thereErr = listedAt(ctx, own.Evidence, subject) },
	} {
		lookups.Go(lookup)
	}
	lookups.Wait()
	for _, d := range there {
		if !slices.Contains(here, d) {
			c.Missing = append(c.Missing, d)
		}
	}
	if c.MissingErr = thereErr; thereErr == nil {
		c.MissingErr = hereErr
	}
	return c
}

func digestAt(ctx context.Context, locations []Location, ref image.Reference) (digest.Digest, error) {
	found, err := resolve(ctx, locations, ref)
	return found.Digest, err
}

// listedAt returns what refers to subject at locations, and an error if there may be more.
func listedAt(ctx context.Context, locations []Location, subject image.Reference) ([]digest.Digest, error) {
	var all []digest.Digest
	var errs []error
	for _, p := range locations {
		found, err := p.Referrers(ctx, subject)
		for _, d := range found {
			if !slices.Contains(all, d.Digest) {
				all = append(all, d.Digest)
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return all, nil
	}
	return all, nowhere(errs)
}

// Sentences says what differs, for people.
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
	case HasReason(c.MirroredErr, policy.ReasonNotFound):
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
		said = append(said, fmt.Sprintf("the origin has %d signatures or attestations that the other repositories lack; copy them with cosign copy or oras cp -r", n))
	}
	return said
}
