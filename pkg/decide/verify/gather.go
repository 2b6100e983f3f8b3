package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// search looks for evidence about one subject at the locations of one registry, in three rounds of
// requests: the subject and the lists of referrers; the referring manifests, and payloads of the signature
// tag; payloads of the other manifests. Each location proceeds when its list arrives, within its share of
// each limit. The order of the answers does not change what is checked.
type search struct {
	*examination
	registry  Registry
	verifiers []*Verifier
	subject   Subject
	board     *board
	blobs     *blobs
	locations Locations
	kept      *kept

	described   chan struct{} // closed once the subject's descriptor is known, or never comes
	isDescribed bool
	whole       chan struct{} // closed once every location has answered
	shares      sync.WaitGroup
	checks      sync.WaitGroup

	mu        sync.Mutex
	manifests map[string]*manifest
}

// run ends when every candidate is checked or ctx ends. It writes the results to the board.
func (s *search) run(ctx context.Context) {
	defer s.recovered()
	s.locations = locationsOf(s.registry, s.subject.Reference)
	s.described, s.whole, s.manifests = make(chan struct{}), make(chan struct{}), map[string]*manifest{}
	s.blobs = newBlobs(s.budget, s.kept, len(s.locations.Evidence), s.whole)
	ctx, cancel := context.WithCancel(ctx)
	defer func() { // after a panic, too: their memory is released once all have ended
		cancel()
		s.shares.Wait()
		s.checks.Wait()
		s.blobs.reads.Wait()
	}()
	listings, err := s.list(ctx)
	if err != nil {
		s.tellAll(0, FindingOf(err))
		return
	}
	lists, merged := s.joined(listings)
	s.read(ctx, s.claim(merged))
	s.shares.Wait()
	candidates, over := fairly(lists, MaxSignatures)
	for rank, c := range candidates {
		c.rank = rank
	}
	s.checkAll(ctx, candidates)
	s.checks.Wait()
	for i, m := range merged {
		s.tell(rankLast+i, m)
	}
	if over > 0 {
		s.tellAll(rankFirst, policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message: fmt.Sprintf("%s has %d signatures for this image, only the first %d are tried", names(s.locations.Evidence),
				over+MaxSignatures, MaxSignatures),
			Remediation: "remove superfluous signatures from the repository"})
	}
	s.board.look(s.registry, s.looked(listings))
}

// recovered makes a finding of a panic: our own fault must not look like an answer about the image.
func (s *search) recovered() {
	if r := recover(); r != nil {
		s.tellAll(0, policy.Finding{Unknown: true, Reason: policy.ReasonInternalError, Message: fmt.Sprintf("internal error: %v", r)})
	}
}

// share checks the evidence that one location lists, up to its share of each limit, regardless of the
// others.
func (s *search) share(ctx context.Context, own []*manifest, unread claimed) {
	defer s.recovered()
	defer unread.release()
	<-s.described
	if !s.isDescribed {
		return
	}
	check := func() {
		candidates, _ := fairly([][]*manifest{leading(own)}, MaxSignatures/len(s.locations.Evidence))
		s.checkAll(ctx, candidates)
	}
	s.parseAll(ctx, unread.embedded)
	check()
	s.fetchAll(ctx, unread.others)
	check()
	for _, m := range own { // another location may be reading it
		<-m.read
	}
	check()
}

// Findings about the whole search rank before those about one signature: a reason has space
// for few, and an exceeded limit explains the rest. Unreadable manifests rank last.
const (
	rankFirst = -1
	rankLast  = 1 << 20
)

// checkAll starts a check of every signature by every verifier that accepts it, unless it has started
// before.
func (s *search) checkAll(ctx context.Context, candidates []*candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range candidates {
		if c.started {
			continue
		}
		c.started = true
		s.checks.Go(func() {
			for _, v := range s.verifiers {
				s.check(ctx, v, c)
			}
		})
	}
}

// check lets v check a signature that it accepts.
func (s *search) check(ctx context.Context, v *Verifier, signature *candidate) {
	defer func() {
		if r := recover(); r != nil {
			// Our own fault must not look like an answer about the image.
			s.board.add(s.registry, v, &signature.rank, policy.Finding{Unknown: true, Reason: policy.ReasonInternalError,
				Message: fmt.Sprintf("internal error while checking: %v", r)})
		}
	}()
	if !v.Checker.Accepts(signature.Signature) {
		return
	}
	turn, err := s.budget.turns.Take(ctx, s.budget.account)
	if err != nil {
		s.board.add(s.registry, v, &signature.rank, FindingOf(Unfinished(fmt.Errorf("check %s: %w", signature.Descriptor.Digest, err))))
		return
	}
	check := s.budget.check(turn)
	defer func() {
		check.end()
		turn.Leave()
		s.budget.checked.Add(int64(turn.Used()))
	}()
	var finding policy.Finding
	if !s.budget.over(turn) {
		end := s.trace.begin(Stage{Name: "check", Verifier: v.Source, Detail: v.Source.String() + " " + signature.Descriptor.Digest.String()})
		finding = v.withCommand(
			Found(v.Checker.Check(withTurn(ctx, check), s.subject, signature.Signature, s.between(turn, signature.in), s.now())),
			s.subject.Reference)
		end()
	}
	check.end() // before the finding is held
	if !finding.Proven() && s.budget.over(turn) {
		finding = policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message:     fmt.Sprintf("%s, so this signature was not checked", errCheckTime),
			Remediation: "remove superfluous signatures from the repository, or make the Verifier's expressions simpler"}
	}
	finding.Digest, finding.ArtifactType = signature.Descriptor.Digest.String(), artifactType(signature.Signature)
	s.board.add(s.registry, v, &signature.rank, finding)
}

// between returns a [Fetch] from the locations that list m. It leaves turn while it waits for them.
func (s *search) between(turn *fair.Turn[Account], m *manifest) Fetch {
	return func(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
		turn.Leave()
		content, err := s.blobs.fetch(ctx, func() []Location { return s.where(m) }, desc, limit, 1)
		if err := turn.Enter(ctx); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", desc.Digest, err)
		}
		if s.budget.over(turn) {
			return nil, errCheckTime
		}
		return content, err
	}
}

// artifactType returns the type that the manifest itself states, unless it is too long
// to be one. The OCI image specification lets the config's media type stand in for a
// missing artifactType.
func artifactType(s Signature) string {
	for _, stated := range []string{s.Manifest.ArtifactType, s.Manifest.Config.MediaType} {
		if stated != "" && stated != ocispec.MediaTypeImageConfig && len(stated) <= maxMediaType {
			return stated
		}
	}
	return s.Layer.MediaType
}

// tellAll adds the same finding for every verifier of the search.
func (s *search) tellAll(rank int, finding policy.Finding) {
	for _, v := range s.verifiers {
		s.board.add(s.registry, v, &rank, finding)
	}
}

// searchGroup says which verifiers share a search.
type searchGroup struct {
	registry Registry
	warns    bool
}

// searches groups the verifiers that have to run by their registry. Verifiers that only
// warnings need have their own searches.
func searches(tasks []task) map[searchGroup][]*Verifier {
	groups := map[searchGroup][]*Verifier{}
	for _, warns := range []bool{false, true} {
		for _, t := range tasks {
			if t.known || t.warns != warns {
				continue
			}
			for _, v := range t.verifiers {
				enforced := searchGroup{registry: t.tier.Registry}
				group := searchGroup{registry: t.tier.Registry, warns: warns}
				if !slices.Contains(groups[enforced], v) && !slices.Contains(groups[group], v) {
					groups[group] = append(groups[group], v)
				}
			}
		}
	}
	return groups
}
