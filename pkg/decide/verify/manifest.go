package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// manifest is a manifest that refers to the subject. It is read once, for all locations that
// list it.
type manifest struct {
	ocispec.Descriptor

	// `search.mu` guards these.
	where   []int  // the indexes of the locations that list it, ascending
	data    []byte // its content, if a list embeds it
	claimed bool   // some goroutine reads it

	read chan struct{} // closed once the following fields are set
	// candidates are the first signatures in it that some verifier accepts, and more is the number of further ones.
	candidates []*candidate
	more       int
	empty      bool            // it has no layers
	failed     *policy.Finding // why it could not be read
}

// candidate is a signature that some verifier accepts, with its manifest.
type candidate struct {
	Signature
	in      *manifest
	rank    int  // among all candidates, once every location has answered
	started bool // its check; guarded by `search.mu`
}

// refer returns the manifests of a location's list, each once. Identical entries of two locations are the same
// manifest: otherwise a location that states another size would spoil it for the others.
func (s *search) refer(at int, list []ocispec.Descriptor) []*manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []*manifest
	for _, d := range list {
		key := fmt.Sprintf("%s %d %s", d.Digest, d.Size, d.MediaType)
		m, known := s.manifests[key]
		if !known {
			m = &manifest{Descriptor: d, read: make(chan struct{})}
			s.manifests[key] = m
		}
		if len(m.data) == 0 {
			m.data = d.Data
		}
		if !slices.Contains(m.where, at) {
			m.where = append(m.where, at)
			slices.Sort(m.where)
		}
		if !slices.Contains(own, m) {
			own = append(own, m)
		}
	}
	return own
}

// where returns the locations that list m, as far as known.
func (s *search) where(m *manifest) []Location {
	s.mu.Lock()
	defer s.mu.Unlock()
	locations := make([]Location, len(m.where))
	for i, at := range m.where {
		locations[i] = s.locations.Evidence[at]
	}
	return locations
}

// claimed are manifests that one goroutine reads: those with content embedded in a list, and the
// others.
type claimed struct{ embedded, others []*manifest }

// claim returns the manifests that no goroutine reads yet. The caller reads or releases them.
func (s *search) claim(manifests []*manifest) (unread claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range manifests {
		switch {
		case m.claimed:
			continue
		case len(m.data) > 0:
			unread.embedded = append(unread.embedded, m)
		default:
			unread.others = append(unread.others, m)
		}
		m.claimed = true
	}
	return unread
}

// release ends the wait for manifests that are not read.
func (c claimed) release() {
	for _, m := range slices.Concat(c.embedded, c.others) {
		if !m.isRead() {
			close(m.read)
		}
	}
}

func (m *manifest) isRead() bool {
	select {
	case <-m.read:
		return true
	default:
		return false
	}
}

// read reads all of unread.
func (s *search) read(ctx context.Context, unread claimed) {
	defer unread.release()
	s.parseAll(ctx, unread.embedded)
	s.fetchAll(ctx, unread.others)
}

// fetchAll fetches manifests in parallel, and parses them.
func (s *search) fetchAll(ctx context.Context, manifests []*manifest) {
	if len(manifests) == 0 {
		return
	}
	end := s.trace.start("manifests", fmt.Sprintf("%d", len(manifests)))
	contents := make([][]byte, len(manifests))
	var fetches sync.WaitGroup
	for i, m := range manifests {
		fetches.Go(func() {
			content, err := s.blobs.fetch(ctx, func() []Location { return s.where(m) }, m.Descriptor, MaxManifestBytes, manifestBytes)
			if err != nil {
				m.fail(FindingOf(err))
			}
			contents[i] = content
		})
	}
	fetches.Wait()
	end()
	s.parse(ctx, manifests, contents)
}

// parseAll parses manifests that a list embeds.
func (s *search) parseAll(ctx context.Context, manifests []*manifest) {
	if len(manifests) == 0 {
		return
	}
	contents := make([][]byte, len(manifests))
	for i, m := range manifests {
		contents[i] = m.data
		if err := s.budget.hold(manifestBytes * int64(len(m.data))); err != nil {
			m.fail(FindingOf(err))
		}
	}
	s.parse(ctx, manifests, contents)
}

// parse finds the candidates in manifests, in a turn of the account.
func (s *search) parse(ctx context.Context, manifests []*manifest, contents [][]byte) {
	defer claimed{others: manifests}.release()
	err := s.budget.compute(ctx, func(ctx context.Context) {
		for i, m := range manifests {
			if m.failed != nil {
				continue
			}
			if err := Step(ctx); err != nil {
				m.fail(FindingOf(err))
				continue
			}
			s.candidates(m, contents[i])
		}
	})
	if err != nil {
		s.tellAll(rankFirst, FindingOf(err))
	}
}

// candidates finds the signatures in m that some verifier accepts.
func (s *search) candidates(m *manifest, content []byte) {
	parsed, err := readManifest(content, m.Descriptor)
	if err != nil {
		finding := FindingOf(err)
		finding.Digest = m.Digest.String()
		m.fail(finding)
		return
	}
	m.empty = len(parsed.Layers) == 0
	for _, layer := range distinct(parsed.Layers) {
		signature := Signature{Descriptor: m.Descriptor, Manifest: parsed, Layer: layer}
		if !slices.ContainsFunc(s.verifiers, func(v *Verifier) bool { return v.Checker.Accepts(signature) }) {
			continue
		}
		if len(m.candidates) == MaxSignatures {
			m.more++
			continue
		}
		m.candidates = append(m.candidates, &candidate{Signature: signature, in: m})
	}
}

func (m *manifest) fail(finding policy.Finding) { m.failed = &finding }

// tell adds a finding of every verifier about an unreadable manifest, because it might have held a signature, or
// about one without signatures.
func (s *search) tell(rank int, m *manifest) {
	switch {
	case m.failed != nil:
		s.tellAll(rank, *m.failed)
	case m.empty && len(m.data) > 0:
		s.tellAll(rank, policy.Finding{Reason: policy.ReasonNoLayers, Digest: m.Digest.String(),
			Message:     fmt.Sprintf("signature manifest %s has no layers, so it holds no signature", m.Digest),
			Remediation: "sign the image again"})
	}
}

// leading returns the manifests before the first unread one.
func leading(manifests []*manifest) []*manifest {
	if i := slices.IndexFunc(manifests, func(m *manifest) bool { return !m.isRead() }); i >= 0 {
		return manifests[:i]
	}
	return manifests
}

// merge joins lists round robin, so that a long one does not push another past a limit, and reports whether there are
// more than most entries. Each list gets at least most/len(lists) entries.
func merge(lists [][]*manifest, most int) (merged []*manifest, over bool) {
	seen := map[*manifest]bool{}
	for i, more := 0, true; more; i++ {
		more = false
		for _, list := range lists {
			if i >= len(list) {
				continue
			}
			more = true
			if m := list[i]; !seen[m] {
				if len(merged) == most {
					return merged, true
				}
				seen[m], merged = true, append(merged, m)
			}
		}
	}
	return merged, false
}

// fairly takes up to most candidates, and returns the number of the rest. It takes the first most/len(lists) of each
// list, so that a list with many does not hide those of another. All manifests have been read.
func fairly(lists [][]*manifest, most int) (taken []*candidate, over int) {
	queues := make([][]*candidate, len(lists))
	counted, chosen := map[*manifest]bool{}, map[*candidate]bool{}
	for at, list := range lists {
		for _, m := range list {
			queues[at] = append(queues[at], m.candidates...)
			if !counted[m] {
				counted[m], over = true, over+len(m.candidates)+m.more
			}
		}
	}
	for more := true; more; {
		more = false
		for at, queue := range queues {
			for len(queue) > 0 && chosen[queue[0]] {
				queue = queue[1:]
			}
			queues[at] = queue
			if len(queue) > 0 && len(taken) < most {
				chosen[queue[0]], taken, more = true, append(taken, queue[0]), true
			}
		}
	}
	return taken, over - len(taken)
}
