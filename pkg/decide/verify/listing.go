package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Looked says what one location held for an image.
type Looked struct {
	Digest     digest.Digest // of the image
	Repository string        // with its host
	Role       Role
	// Manifests refer to the image. Signatures of them, attestations too, are of a kind that
	// a Verifier checks.
	Manifests, Signatures int
	// Err says why the location may hold more, "" if all was listed.
	Err string
}

// String returns l as a clause: the location and what it held.
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

// lookedAt says what each location held, as the end of a reason. With the image's own
// repository alone there is nothing to add.
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

// listed is a manifest that refers to the subject.
type listed struct {
	ocispec.Descriptor
	at    int        // index of the first location that lists it
	where []Location // that list it
}

// list reads the subject's descriptor and lists its referrers at every location, in parallel.
// It returns false if the subject could not be read: then nothing can be proven about it.
func (s *search) list(ctx context.Context) ([]listed, bool) {
	var errs []error
	found, subject, known := s.kept.lists(s.locations, s.subject.stated, s.allows, s.denies)
	if !known {
		var subjectErr error
		if found, errs, subjectErr = s.ask(ctx); subjectErr != nil {
			s.tellAll(0, FindingOf(subjectErr))
			return nil, false
		}
		described := s.subject.Descriptor
		if s.subject.stated {
			described = ocispec.Descriptor{}
		}
		if errors.Join(errs...) == nil {
			s.kept.listed(s.locations, found, described)
		}
	} else {
		errs = make([]error, len(found))
		if !s.subject.stated {
			s.subject.Descriptor = subject
		}
	}
	return s.joined(found, errs), true
}

// ask asks every location for its list, and for the subject's descriptor, in parallel.
func (s *search) ask(ctx context.Context) (found [][]ocispec.Descriptor, errs []error, subjectErr error) {
	locations := s.locations.Evidence
	found, errs = make([][]ocispec.Descriptor, len(locations)), make([]error, len(locations))
	var lists sync.WaitGroup
	for i, location := range locations {
		lists.Go(func() {
			defer s.trace.start("list", location.Name)()
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fmt.Errorf("internal error: %v", r)
				}
			}()
			found[i], errs[i] = location.Referrers(ctx, s.subject.Reference)
		})
	}
	subjectErr = s.describe(ctx)
	lists.Wait()
	return found, errs, subjectErr
}

// joined merges the lists, and tells what keeps them from being whole.
func (s *search) joined(found [][]ocispec.Descriptor, errs []error) []listed {
	locations := s.locations.Evidence
	looked := make([]Looked, len(locations))
	for i, location := range locations {
		looked[i] = Looked{Digest: s.subject.Reference.Digest, Repository: location.Name, Role: location.Role, Manifests: len(found[i])}
		if errs[i] == nil {
			continue
		}
		looked[i].Err = errs[i].Error()
		finding := FindingOf(errs[i])
		// A list that a retry cannot complete hides evidence, whatever cut it short.
		finding.Incomplete = finding.Result() != policy.Unknown
		s.tellAll(rankFirst, finding)
	}
	s.board.look(s.registry, looked)
	merged := merge(locations, found)
	if len(merged) > MaxReferrers {
		merged = merged[:MaxReferrers]
		s.tellAll(rankFirst, policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message:     fmt.Sprintf("%s has more than %d referrers, only the first ones are read", names(locations), MaxReferrers),
			Remediation: "remove superfluous signatures and attestations from the repository"})
	}
	return merged
}

// merge joins the lists of locations round robin, so that a long one does not push another
// past a limit. A manifest that several locations list counts once. It has to be listed alike:
// else a location that states another size would spoil it for the others.
func merge(locations []Location, lists [][]ocispec.Descriptor) []listed {
	var merged []listed
	seen := map[string]int{}
	for i, more := 0, true; more; i++ {
		more = false
		for at, list := range lists {
			if i >= len(list) {
				continue
			}
			more = true
			d := list[i]
			key := fmt.Sprintf("%s %d %s", d.Digest, d.Size, d.MediaType)
			j, again := seen[key]
			if !again {
				seen[key] = len(merged)
				merged = append(merged, listed{Descriptor: d, at: at, where: locations[at : at+1 : at+1]})
				continue
			}
			merged[j].where = append(merged[j].where, locations[at])
			if len(merged[j].Data) == 0 {
				merged[j].Data = d.Data
			}
		}
	}
	return merged
}

// describe fills in the subject's size and media type: a digest reference lacks them,
// and notation signs them. What another layer's locations say about the subject is not taken
// for what those of this search would say.
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

// candidate is a signature that some verifier accepts, and the manifest it is in.
type candidate struct {
	Signature
	in listed
}

// shares bounds the signatures of one image that are checked. Locations take turns, so that
// one that has many does not hide those of another.
type shares struct {
	free, each int
	taken      []int         // by location
	waiting    [][]candidate // by location
	over       int           // that are not checked
}

// newShares returns the shares of the locations that list something.
func newShares(locations int, manifests []listed) *shares {
	have := map[int]bool{}
	for _, m := range manifests {
		have[m.at] = true
	}
	return &shares{free: MaxSignatures, each: MaxSignatures / max(len(have), 1), taken: make([]int, locations), waiting: make([][]candidate, locations)}
}

// add queues a candidate. No location ever has more than all that may be checked.
func (s *shares) add(c candidate) {
	if queue := s.waiting[c.in.at]; len(queue) < MaxSignatures {
		s.waiting[c.in.at] = append(queue, c)
		return
	}
	s.over++
}

// first takes what may be checked before it is known how many more there are: a share of
// each location.
func (s *shares) first() []candidate { return s.take(s.each) }

// rest takes all that may still be checked.
func (s *shares) rest() []candidate {
	taken := s.take(MaxSignatures)
	for _, queue := range s.waiting {
		s.over += len(queue)
	}
	s.waiting = nil
	return taken
}

// take takes from the locations that had fewest, up to each from one.
func (s *shares) take(each int) (taken []candidate) {
	for ; s.free > 0; s.free-- {
		least := -1
		for at, queue := range s.waiting {
			if len(queue) > 0 && s.taken[at] < each && (least < 0 || s.taken[at] < s.taken[least]) {
				least = at
			}
		}
		if least < 0 {
			break
		}
		taken, s.waiting[least] = append(taken, s.waiting[least][0]), s.waiting[least][1:]
		s.taken[least]++
	}
	return taken
}
