package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// search looks for evidence about one subject at the locations of one registry, in three
// rounds of requests: the subject and the lists of referrers; the referring manifests, and
// payloads of the signature tag; payloads of the other manifests.
type search struct {
	*examination
	registry  Registry
	verifiers []*Verifier
	subject   Subject
	board     *board
	blobs     *blobs
	locations Locations
	kept      *kept
}

// run ends when every candidate is checked or ctx ends. The results are on the board.
func (s *search) run(ctx context.Context) {
	defer func() {
		if r := recover(); r != nil {
			s.tellAll(0, policy.Finding{Unknown: true, Reason: policy.ReasonInternalError, Message: fmt.Sprintf("internal error: %v", r)})
		}
	}()
	s.blobs, s.locations = newBlobs(s.budget, s.kept), locationsOf(s.registry, s.subject.Reference)
	manifests, ok := s.list(ctx)
	if !ok {
		return
	}
	read, others := s.split(manifests)
	fair := newShares(len(s.locations.Evidence), manifests)
	s.candidates(ctx, fair, read)
	first := fair.first()
	var checks sync.WaitGroup
	defer checks.Wait() // after a panic, too: what they hold is given back once all have ended
	s.checkAll(ctx, &checks, 0, first)
	if len(others) > 0 {
		s.candidates(ctx, fair, s.manifests(ctx, others))
	}
	s.checkAll(ctx, &checks, len(first), fair.rest())
	checks.Wait()
	if fair.over > 0 {
		s.tellAll(rankFirst, policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message:     fmt.Sprintf("%s has %d signatures for this image, only the first %d are tried", names(s.locations.Evidence), fair.over+MaxSignatures, MaxSignatures),
			Remediation: "remove superfluous signatures from the repository"})
	}
}

// Findings about the whole search rank before those about one signature: a reason
// has room for few, and a limit that was hit explains the rest. Manifests that could not
// be read rank last.
const (
	rankFirst = -1
	rankLast  = 1 << 20
)

// referring is a manifest that refers to the subject, or why it could not be read.
type referring struct {
	listed
	content []byte
	err     error
}

// split separates manifests that embed their content (the signature tag) from those
// to fetch.
func (s *search) split(manifests []listed) (read []referring, others []listed) {
	for _, m := range manifests {
		if len(m.Data) > 0 {
			err := s.budget.hold(manifestBytes * int64(len(m.Data)))
			read = append(read, referring{listed: m, content: m.Data, err: err})
		} else {
			others = append(others, m)
		}
	}
	return read, others
}

// manifests fetches referring manifests in parallel, and keeps their order.
func (s *search) manifests(ctx context.Context, others []listed) []referring {
	defer s.trace.start("manifests", fmt.Sprintf("%d", len(others)))()
	manifests := make([]referring, len(others))
	var fetches sync.WaitGroup
	for i, m := range others {
		fetches.Go(func() {
			content, err := s.blobs.fetch(ctx, m.where, m.Descriptor, MaxManifestBytes, manifestBytes)
			manifests[i] = referring{listed: m, content: content, err: err}
		})
	}
	fetches.Wait()
	return manifests
}

// candidates queues the signatures in manifests that some verifier accepts.
func (s *search) candidates(ctx context.Context, fair *shares, manifests []referring) {
	err := s.budget.compute(ctx, func(ctx context.Context) {
		for i, m := range manifests {
			s.parse(ctx, fair, rankLast+i, m)
		}
	})
	if err != nil {
		s.tellAll(rankFirst, FindingOf(err))
	}
}

// parse is candidates for one manifest. One that could not be read becomes a finding of
// every verifier: it might have held a signature.
func (s *search) parse(ctx context.Context, fair *shares, rank int, m referring) {
	if err := cmp.Or(m.err, Step(ctx)); err != nil {
		s.tellAll(rank, FindingOf(err))
		return
	}
	manifest, err := readManifest(m.content, m.Descriptor)
	if err != nil {
		finding := FindingOf(err)
		finding.Digest = m.Digest.String()
		s.tellAll(rank, finding)
		return
	}
	if len(manifest.Layers) == 0 && len(m.Data) > 0 {
		s.tellAll(rank, policy.Finding{Reason: policy.ReasonNoLayers, Digest: m.Digest.String(),
			Message:     fmt.Sprintf("signature manifest %s has no layers, so it holds no signature", m.Digest),
			Remediation: "sign the image again"})
	}
	understood := false
	for _, layer := range distinct(manifest.Layers) {
		if signature := (Signature{Descriptor: m.Descriptor, Manifest: manifest, Layer: layer}); slices.ContainsFunc(s.verifiers, func(v *Verifier) bool { return v.Checker.Accepts(signature) }) {
			understood = true
			fair.add(candidate{Signature: signature, in: m.listed})
		}
	}
	if understood {
		s.board.understand(s.registry, m.where)
	}
}

// checkAll starts a check of every signature by every verifier that accepts it; first is the rank of
// the first.
func (s *search) checkAll(ctx context.Context, checks *sync.WaitGroup, first int, candidates []candidate) {
	for i, signature := range candidates {
		checks.Go(func() {
			for _, v := range s.verifiers {
				s.check(ctx, v, first+i, signature)
			}
		})
	}
}

// check has v check a signature, if it accepts it.
func (s *search) check(ctx context.Context, v *Verifier, rank int, signature candidate) {
	defer func() {
		if r := recover(); r != nil {
			// Our own fault must not look like an answer about the image.
			s.board.add(s.registry, v, rank, policy.Finding{Unknown: true, Reason: policy.ReasonInternalError,
				Message: fmt.Sprintf("internal error while checking: %v", r)})
		}
	}()
	if !v.Checker.Accepts(signature.Signature) {
		return
	}
	turn, err := s.budget.turns.Take(ctx, s.budget.account)
	if err != nil {
		s.board.add(s.registry, v, rank, FindingOf(fmt.Errorf("check %s: %w", signature.Descriptor.Digest, err)))
		return
	}
	defer turn.Leave()
	end := s.trace.begin(Stage{Name: "check", Verifier: v.Source, Detail: v.Source.String() + " " + signature.Descriptor.Digest.String()})
	finding := v.withCommand(Found(v.Checker.Check(withTurn(ctx, turn), s.subject, signature.Signature, s.between(turn, signature.in.where), s.now())), s.subject.Reference)
	end()
	finding.Digest, finding.ArtifactType = signature.Descriptor.Digest.String(), artifactType(signature.Signature)
	s.board.add(s.registry, v, rank, finding)
}

// between returns a [Fetch] from the locations where a signature was listed. It leaves turn
// while it waits for them.
func (s *search) between(turn *fair.Turn[Account], where []Location) Fetch {
	return func(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
		turn.Leave()
		content, err := s.blobs.fetch(ctx, where, desc, limit, 1)
		if err := turn.Enter(ctx); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", desc.Digest, err)
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
		s.board.add(s.registry, v, rank, finding)
	}
}

// searchGroup says which verifiers share a search.
type searchGroup struct {
	registry Registry
	warns    bool
}

// searches groups the verifiers that have to run by where they look, those that
// only warnings need apart.
func searches(tasks []task) map[searchGroup][]*Verifier {
	groups := map[searchGroup][]*Verifier{}
	for _, warns := range []bool{false, true} {
		for _, t := range tasks {
			if t.known || t.warns != warns {
				continue
			}
			for _, v := range t.verifiers {
				enforced := searchGroup{registry: t.layer.Registry}
				group := searchGroup{registry: t.layer.Registry, warns: warns}
				if !slices.Contains(groups[enforced], v) && !slices.Contains(groups[group], v) {
					groups[group] = append(groups[group], v)
				}
			}
		}
	}
	return groups
}

// blobs reads content for one image: each blob once, at most left bytes in all, and no
// more than the account has memory for. Every caller shares the context of the image's
// work, so one read may serve all.
type blobs struct {
	budget *budget
	kept   *kept

	mu    sync.Mutex
	left  int64
	reads map[string]func() ([]byte, error)
}

func newBlobs(budget *budget, kept *kept) *blobs {
	return &blobs{budget: budget, kept: kept, left: MaxImageBytes, reads: map[string]func() ([]byte, error){}}
}

// fetch reads a blob of at most limit bytes at the first of locations that serves it. It holds
// so many times its size in memory.
func (b *blobs) fetch(ctx context.Context, where []Location, desc ocispec.Descriptor, limit, times int64) ([]byte, error) {
	if desc.Size < 0 || desc.Size > limit { // a negative size would enlarge what is left
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s is %d bytes large, the limit is %d", desc.Digest, desc.Size, limit))
	}
	read, err := b.read(ctx, where, desc, limit, times)
	if err != nil {
		return nil, err
	}
	return read()
}

// read returns the function that reads a descriptor once, on its first call.
func (b *blobs) read(ctx context.Context, where []Location, desc ocispec.Descriptor, limit, times int64) (func() ([]byte, error), error) {
	// Size and media type are part of the identity: with them the registry
	// client decides what it reads and how. So are the locations: one that fails must not
	// fail evidence that another holds.
	key := fmt.Sprintf("%s %d %s %s", desc.Digest, desc.Size, names(where), desc.MediaType)
	b.mu.Lock()
	defer b.mu.Unlock()
	if read, ok := b.reads[key]; ok {
		return read, nil
	}
	if desc.Size > b.left {
		return nil, Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the evidence is larger than %d bytes in all", MaxImageBytes))
	}
	if err := b.budget.hold(times * desc.Size); err != nil {
		return nil, err
	}
	b.left -= desc.Size
	b.reads[key] = sync.OnceValues(func() (content []byte, err error) {
		// A panic becomes an error, because others wait for this blob.
		defer func() {
			if p := recover(); p != nil {
				content, err = nil, fmt.Errorf("internal error while fetching: %v", p)
			}
		}()
		if content, ok := b.kept.content(desc); ok {
			return content, nil
		}
		if content, err = fetchAt(ctx, where, desc, limit); err == nil {
			b.kept.add(desc.Digest, content)
		}
		return content, err
	})
	return b.reads[key], nil
}
