package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Looked describes what one location held for an image.
type Looked struct {
	Digest     digest.Digest // of the image
	Repository string        // with its host
	Role       Role
	// Manifests is the number of manifests that refer to the image. Signatures is the number of
	// their signatures and attestations that some Verifier could check.
	Manifests, Signatures int
	// Err says why the location may hold more, "" if everything was listed.
	Err string
	// Lacks names the feature that the registry of the location lacks, "" if none is known.
	Lacks string
}

// String returns l as a clause: the location and its content.
func (l Looked) String() string {
	held := "nothing"
	switch others := l.Manifests - l.Signatures; {
	case l.Manifests == 0 && l.Err != "":
		held = "could not be read"
	case l.Signatures > 0 && others > 0:
		held = fmt.Sprintf("%d to check and %d of another kind", l.Signatures, others)
	case l.Signatures > 0:
		held = fmt.Sprintf("%d to check", l.Signatures)
	case others > 0:
		held = fmt.Sprintf("%d of another kind", others)
	}
	if l.Manifests > 0 && l.Err != "" {
		held += ", not all read"
	}
	return fmt.Sprintf("%.*s: %s", maxLocationName, l.Repository, held)
}

// lookedAt describes the content of each location, as the end of a reason. For the image's
// own repository alone it is empty.
func lookedAt(locations []Looked) string {
	if len(locations) == 0 || len(locations) == 1 && locations[0].Role == RoleOrigin {
		return ""
	}
	var held []string
	for _, l := range locations[:min(len(locations), maxLocationsNamed)] {
		held = append(held, l.String())
	}
	if more := len(locations) - maxLocationsNamed; more > 0 {
		held = append(held, fmt.Sprintf("and %d more repositories", more))
	}
	return " (looked at " + strings.Join(held, "; ") + ")"
}

// listing is the list of one location.
type listing struct {
	found     []ocispec.Descriptor
	manifests []*manifest // of found
	err       error
}

// list reads the subject's descriptor and lists its referrers at every location, in parallel, and starts
// the share of each location once it has answered. It fails if the subject could not be read: then
// nothing can be proven about it.
func (s *search) list(ctx context.Context) ([]listing, error) {
	kept, subject, known := s.kept.lists(s.locations, s.subject.stated, s.allows, s.denies)
	listings := make([]listing, len(s.locations.Evidence))
	var lists sync.WaitGroup
	for at := range listings {
		lists.Add(1)
		s.shares.Go(func() {
			answered := sync.OnceFunc(lists.Done)
			defer answered()
			defer s.recovered()
			l := &listings[at]
			if known {
				l.found = kept[at]
			} else {
				l.found, l.err = s.listAt(ctx, s.locations.Evidence[at])
			}
			l.manifests = s.refer(at, l.found)
			own := l.manifests[:min(len(l.manifests), MaxReferrers/len(listings))]
			unread := s.claim(own)
			answered()
			s.share(ctx, own, unread)
		})
	}
	if err := s.describeOnce(ctx, subject, known); err != nil {
		return nil, err
	}
	lists.Wait()
	close(s.whole)
	if !known {
		s.keepLists(listings)
	}
	return listings, nil
}

// keepLists keeps complete lists.
func (s *search) keepLists(listings []listing) {
	found := make([][]ocispec.Descriptor, len(listings))
	for at, l := range listings {
		if l.err != nil {
			return
		}
		found[at] = l.found
	}
	described := s.subject.Descriptor
	if s.subject.stated {
		described = ocispec.Descriptor{}
	}
	s.kept.listed(s.locations, found, described)
}

// listAt asks one location for its list.
func (s *search) listAt(ctx context.Context, location Location) (found []ocispec.Descriptor, err error) {
	defer s.trace.start("list", location.Name)()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	found, err = location.Referrers(ctx, s.subject.Reference)
	if err == nil {
		s.trace.answerNow()
	}
	return found, err
}

// joined returns the manifests to read, by location and all, and reports why they may be
// incomplete.
func (s *search) joined(listings []listing) (lists [][]*manifest, merged []*manifest) {
	for _, l := range listings {
		lists = append(lists, l.manifests)
		if l.err == nil {
			continue
		}
		finding := FindingOf(l.err)
		// A list that a retry cannot complete hides evidence, regardless of the cause.
		finding.Incomplete = finding.Result() != policy.Unknown
		s.tellAll(rankFirst, finding)
	}
	merged, over := merge(lists, MaxReferrers)
	if over {
		for at, list := range lists {
			lists[at] = slices.DeleteFunc(slices.Clone(list), func(m *manifest) bool { return !slices.Contains(merged, m) })
		}
		s.tellAll(rankFirst, policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message:     fmt.Sprintf("%s has more than %d referrers, only the first ones are read", names(s.locations.Evidence), MaxReferrers),
			Remediation: "remove superfluous signatures and attestations from the repository"})
	}
	return lists, merged
}

// looked describes the content of the locations. The search has ended.
func (s *search) looked(listings []listing) []Looked {
	suffices := s.board.isClosed()
	looked := make([]Looked, len(listings))
	for at, location := range s.locations.Evidence {
		looked[at] = Looked{Digest: s.subject.Reference.Digest, Repository: location.Name, Role: location.Role,
			Manifests: len(listings[at].found)}
		if r, ok := location.Repository.(interface{ Lacks() string }); ok {
			looked[at].Lacks = r.Lacks()
		}
		switch err := listings[at].err; {
		case err == nil:
		case suffices:
			looked[at].Err = "not awaited, other evidence suffices"
		default:
			looked[at].Err = err.Error()
		}
	}
	for _, m := range s.manifests {
		for _, at := range m.where {
			if len(m.candidates) > 0 {
				looked[at].Signatures++
			}
		}
	}
	return looked
}

// describeOnce fills in the subject's descriptor, which may be kept, and starts the shares.
func (s *search) describeOnce(ctx context.Context, kept ocispec.Descriptor, known bool) error {
	defer close(s.described)
	switch {
	case !known:
		if err := s.describe(ctx); err != nil {
			return err
		}
	case !s.subject.stated:
		s.subject.Descriptor = kept
	}
	s.isDescribed = true
	return nil
}

// describe fills in the subject's size and media type: a digest reference lacks them, and
// notation signs them. It ignores the locations of other tiers, which may state other values.
func (s *search) describe(ctx context.Context) error {
	if s.subject.Descriptor.Digest == s.subject.Reference.Digest && s.subject.Descriptor.MediaType != "" &&
		sameContent(s.registry, s.subject.describedBy, s.subject.Reference) {
		return nil
	}
	defer s.trace.start("resolve", s.subject.Reference.String())()
	descriptor, err := s.locations.Resolve(ctx, s.subject.Reference)
	s.subject.Descriptor = descriptor
	return err
}
