package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/fair"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// search looks for evidence about one subject in one registry, in three rounds of
// requests: the subject and the lists of referrers; the referring manifests, and
// payloads of the signature tag; payloads of the other manifests.
type search struct {
	*examination
	registry  Registry
	verifiers []*Verifier
	subject   Subject
	board     *board
	blobs     *blobs
}

// run ends when every candidate is checked or ctx ends. The results are on the board.
func (s *search) run(ctx context.Context) {
	defer func() {
		if r := recover(); r != nil {
			s.tellAll(0, policy.Finding{Result: policy.Unknown, Reason: policy.ReasonInternalError, Message: fmt.Sprintf("internal error: %v", r)})
		}
	}()
	s.blobs = newBlobs(s.registry, s.subject.Reference, s.budget)
	listed, ok := s.list(ctx)
	if !ok {
		return
	}
	s.board.list(s.registry, len(listed))
	read, others := s.split(listed)
	candidates, over := s.candidates(ctx, read, MaxSignatures)
	var checks sync.WaitGroup
	defer checks.Wait() // after a panic, too: what they hold is given back once all have ended
	s.checkAll(ctx, &checks, 0, candidates)
	if len(others) > 0 {
		manifests := s.manifests(ctx, others)
		referred, more := s.candidates(ctx, manifests, MaxSignatures-len(candidates))
		s.checkAll(ctx, &checks, len(candidates), referred)
		over += more
	}
	checks.Wait()
	if over > 0 {
		s.tellAll(rankFirst, policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message:     fmt.Sprintf("%s has %d signatures for this image, only the first %d are tried", s.subject.Reference.Name(), over+MaxSignatures, MaxSignatures),
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

// list reads the subject's descriptor and lists its referrers, in parallel. It returns
// false if the subject could not be read: then nothing can be proven about it.
func (s *search) list(ctx context.Context) ([]ocispec.Descriptor, bool) {
	var listed []ocispec.Descriptor
	var listErr error
	var lists sync.WaitGroup
	lists.Go(func() {
		defer s.trace.start("list", s.subject.Reference.Name())()
		defer func() {
			if r := recover(); r != nil {
				listErr = fmt.Errorf("internal error: %v", r)
			}
		}()
		listed, listErr = s.registry.Referrers(ctx, s.subject.Reference)
	})
	subjectErr := s.describe(ctx)
	lists.Wait()
	if subjectErr != nil {
		s.tellAll(0, FindingOf(subjectErr))
		return nil, false
	}
	if listErr != nil {
		finding := FindingOf(listErr)
		// A list that a retry cannot complete hides evidence, whatever cut it short.
		finding.Incomplete = finding.Result != policy.Unknown
		s.tellAll(rankFirst, finding)
	}
	if over := len(listed) - MaxReferrers; over > 0 {
		listed = listed[:MaxReferrers]
		s.tellAll(rankFirst, policy.Finding{Reason: policy.ReasonLimitExceeded, Incomplete: true,
			Message:     fmt.Sprintf("%s has more than %d referrers, only the first ones are read", s.subject.Reference.Name(), MaxReferrers),
			Remediation: "remove superfluous signatures and attestations from the repository"})
	}
	return listed, true
}

// describe fills in the subject's size and media type: a digest reference lacks them,
// and notation signs them.
func (s *search) describe(ctx context.Context) error {
	if s.subject.Descriptor.Digest == s.subject.Reference.Digest && s.subject.Descriptor.MediaType != "" {
		return nil
	}
	defer s.trace.start("resolve", s.subject.Reference.String())()
	descriptor, err := resolve(ctx, s.registry, s.subject.Reference)
	s.subject.Descriptor = descriptor
	return err
}

// referring is a manifest that refers to the subject, or why it could not be read.
type referring struct {
	descriptor ocispec.Descriptor
	content    []byte
	err        error
}

// split separates descriptors that embed their content (the signature tag) from those
// to fetch.
func (s *search) split(listed []ocispec.Descriptor) (read []referring, others []ocispec.Descriptor) {
	for _, descriptor := range listed {
		if len(descriptor.Data) > 0 {
			err := s.budget.hold(manifestBytes * int64(len(descriptor.Data)))
			read = append(read, referring{descriptor: descriptor, content: descriptor.Data, err: err})
		} else {
			others = append(others, descriptor)
		}
	}
	return read, others
}

// manifests fetches referring manifests in parallel, and keeps their order.
func (s *search) manifests(ctx context.Context, descriptors []ocispec.Descriptor) []referring {
	defer s.trace.start("manifests", fmt.Sprintf("%d", len(descriptors)))()
	manifests := make([]referring, len(descriptors))
	var fetches sync.WaitGroup
	for i, descriptor := range descriptors {
		fetches.Go(func() {
			content, err := s.blobs.fetch(ctx, descriptor, MaxManifestBytes, manifestBytes)
			manifests[i] = referring{descriptor: descriptor, content: content, err: err}
		})
	}
	fetches.Wait()
	return manifests
}

// candidates returns the signatures in manifests that some verifier accepts, at most
// limit, and how many more there were.
func (s *search) candidates(ctx context.Context, manifests []referring, limit int) (signatures []Signature, over int) {
	err := s.budget.compute(ctx, func(ctx context.Context) { signatures, over = s.parse(ctx, manifests, limit) })
	if err != nil {
		s.tellAll(rankFirst, FindingOf(err))
	}
	return signatures, over
}

// parse is candidates in a turn. A manifest that could not be read
// becomes a finding of every verifier: it might have held a signature.
func (s *search) parse(ctx context.Context, manifests []referring, limit int) (signatures []Signature, over int) {
	for i, m := range manifests {
		if err := cmp.Or(m.err, Step(ctx)); err != nil {
			s.tellAll(rankLast+i, FindingOf(err))
			continue
		}
		manifest, err := readManifest(m.content, m.descriptor)
		if err != nil {
			finding := FindingOf(err)
			finding.Digest = m.descriptor.Digest.String()
			s.tellAll(rankLast+i, finding)
			continue
		}
		if len(manifest.Layers) == 0 && len(m.descriptor.Data) > 0 {
			s.tellAll(rankLast+i, policy.Finding{Reason: policy.ReasonNoLayers, Digest: m.descriptor.Digest.String(),
				Message:     fmt.Sprintf("signature manifest %s has no layers, so it holds no signature", m.descriptor.Digest),
				Remediation: "sign the image again"})
		}
		for _, layer := range distinct(manifest.Layers) {
			signature := Signature{Descriptor: m.descriptor, Manifest: manifest, Layer: layer}
			switch {
			case !s.accepted(signature):
			case len(signatures) < limit:
				signatures = append(signatures, signature)
			default:
				over++
			}
		}
	}
	return signatures, over
}

// accepted reports whether any verifier accepts a signature.
func (s *search) accepted(signature Signature) bool {
	for _, v := range s.verifiers {
		if v.Checker.Accepts(signature) {
			return true
		}
	}
	return false
}

// checkAll starts a check of every signature; first is the rank of the first.
func (s *search) checkAll(ctx context.Context, checks *sync.WaitGroup, first int, signatures []Signature) {
	for i, signature := range signatures {
		checks.Go(func() { s.check(ctx, first+i, signature) })
	}
}

// check has every verifier that accepts a signature check it.
func (s *search) check(ctx context.Context, rank int, signature Signature) {
	for _, v := range s.verifiers {
		s.checkWith(ctx, v, rank, signature)
	}
}

func (s *search) checkWith(ctx context.Context, v *Verifier, rank int, signature Signature) {
	defer func() {
		if r := recover(); r != nil {
			// Our own fault must not look like an answer about the image.
			s.board.add(s.registry, v, rank, policy.Finding{Result: policy.Unknown, Reason: policy.ReasonInternalError,
				Message: fmt.Sprintf("internal error while checking: %v", r)})
		}
	}()
	if !v.Checker.Accepts(signature) {
		return
	}
	turn, err := s.budget.turns.Take(ctx, s.budget.account)
	if err != nil {
		s.board.add(s.registry, v, rank, FindingOf(fmt.Errorf("check %s: %w", signature.Descriptor.Digest, err)))
		return
	}
	defer turn.Leave()
	end := s.trace.begin(Stage{Name: "check", Verifier: v.Source, Detail: v.Source.String() + " " + signature.Descriptor.Digest.String()})
	finding := v.Checker.Check(withTurn(ctx, turn), s.subject, signature, s.between(turn), s.now())
	end()
	finding.Digest, finding.ArtifactType = signature.Descriptor.Digest.String(), artifactType(signature)
	s.board.add(s.registry, v, rank, finding)
}

// between returns a [Fetch] that leaves turn while it waits for the registry.
func (s *search) between(turn *fair.Turn[Account]) Fetch {
	return func(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
		turn.Leave()
		content, err := s.blobs.fetch(ctx, desc, limit, 1)
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
