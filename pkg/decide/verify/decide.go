package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// ranked is a finding with its position in the evidence, so that results do not depend on the
// order in which checks end. The position may change until its search ends.
type ranked struct {
	rank    *int
	finding policy.Finding
}

// board collects findings from parallel checks and detects when they suffice.
type board struct {
	subject image.Reference
	tasks   []task
	tallies []*policy.Tally // of the tasks; nil for known tasks
	budget  *budget
	settled func() // stops the searches
	// enforced is called when only tiers that warn need more evidence. It may be
	// called repeatedly.
	enforced func()

	mu     sync.Mutex
	found  map[check][]ranked
	looked map[Registry][]Looked
	closed bool
}

// check is a verifier that runs on the evidence of one registry. Evidence in one tier's
// registry never counts for a tier with another registry.
type check struct {
	registry Registry
	verifier *Verifier
}

func newBoard(subject image.Reference, tasks []task, budget *budget, settled, enforced func()) *board {
	b := &board{subject: subject, tasks: tasks, tallies: make([]*policy.Tally, len(tasks)), budget: budget, found: map[check][]ranked{},
		looked: map[Registry][]Looked{}, settled: settled, enforced: enforced}
	for i, t := range tasks {
		if !t.known {
			b.tallies[i] = t.rules.Tally()
		}
	}
	return b
}

// add records a finding of v on the evidence of a registry, unless the verdict is settled:
// later findings are only errors of canceled searches. Its cost does not depend on the number
// of findings. If there is no memory for another one, the search ends.
func (b *board) add(registry Registry, v *Verifier, rank *int, finding policy.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.budget.hold(findingBytes) != nil {
		b.budget.lost.Store(true)
		b.closed = true
		b.settled()
		return
	}
	c, finding := check{registry, v}, v.finding(finding)
	b.found[c] = append(b.found[c], ranked{rank: rank, finding: finding})
	if finding.Proven() { // nothing else can settle a task
		b.tally(c, finding)
	}
}

// look records the content of a registry's locations.
func (b *board) look(registry Registry, looked []Looked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.looked[registry] { // of another search, whose verifiers check other signatures
		looked[i].Signatures = max(looked[i].Signatures, other.Signatures)
	}
	b.looked[registry] = looked
}

// isClosed reports whether the board records nothing more.
func (b *board) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// listed returns how many manifests of a registry refer to the subject.
func (b *board) listed(registry Registry) (n int) {
	for _, l := range b.looked[registry] {
		n += l.Manifests
	}
	return n
}

// tally counts a proven finding, and ends searches that need no more findings.
func (b *board) tally(c check, finding policy.Finding) {
	for i, t := range b.tasks {
		if !t.known && t.tier.Registry == c.registry && slices.Contains(t.verifiers, c.verifier) {
			b.tallies[i].Add(finding)
		}
	}
	done := true
	for i, t := range b.tasks {
		if t.known || b.tallies[i].Settled() {
			continue
		}
		if !t.warns {
			return
		}
		done = false
	}
	if !done {
		b.enforced()
		return
	}
	b.closed = true
	b.settled()
}

// findings returns the findings of one task's verifiers, in order. With absent, a verifier
// without findings reports that it found nothing. That is wrong once every task is settled,
// because searches then stop early. A search that ends for any other reason leaves findings
// that say why.
func (b *board) findings(t task, absent bool) []policy.Finding {
	findings := slices.Clone(t.missing)
	for _, v := range t.verifiers {
		found := slices.Clone(b.found[check{t.tier.Registry, v}])
		if absent && len(found) == 0 {
			findings = append(findings, v.absent(b.subject, b.listed(t.tier.Registry)))
		}
		slices.SortStableFunc(found, func(x, y ranked) int { return *x.rank - *y.rank })
		for _, r := range found {
			findings = append(findings, r.finding)
		}
	}
	return findings
}

// decide returns the verdict of every task, and the findings of all verifiers, each once.
func (b *board) decide(ctx context.Context) ([]policy.Verdict, []policy.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	verdicts := make([]policy.Verdict, len(b.tasks))
	absent := false
	for i, t := range b.tasks {
		verdicts[i] = t.verdict
		if !t.known {
			verdicts[i] = policy.Decide(func() error { return Step(ctx) }, t.rules, b.findings(t, true))
			if verdicts[i].Outcome() != policy.Allowed {
				absent = true
				verdicts[i].Reason += lookedAt(b.looked[t.tier.Registry])
			}
		}
	}
	var findings []policy.Finding
	seen := map[check]bool{}
	for _, t := range b.tasks {
		shown := t
		shown.verifiers = slices.DeleteFunc(slices.Clone(t.verifiers), func(v *Verifier) bool { return seen[check{t.tier.Registry, v}] })
		for _, v := range shown.verifiers {
			seen[check{t.tier.Registry, v}] = true
		}
		findings = append(findings, b.findings(shown, absent)...)
	}
	return verdicts, findings
}

// combine merges the verdicts of the tiers.
func combine(tasks []task, verdict func(int) policy.Verdict) policy.Verdict {
	var all policy.Combined
	for i, t := range tasks {
		all.Add(t.asking(verdict(i)), t.warns)
	}
	return all.Verdict()
}

// unproven returns the verdict on an image for which there is no evidence.
func unproven(tasks []task) policy.Verdict {
	return combine(tasks, func(i int) policy.Verdict {
		if t := tasks[i]; !t.known {
			return policy.Verdict{Policy: t.rules.Source,
				Reason: fmt.Sprintf("%s requires evidence, and no tag or digest says whose; this answer is for an image without evidence",
					t.rules.Source)}
		}
		return tasks[i].verdict
	})
}

// asking returns the verdict of t with its contacts, unless it allows. The reason says whether its policy is mandatory:
// no change in the namespace helps then.
func (t task) asking(verdict policy.Verdict) policy.Verdict {
	if t.tier == nil {
		return verdict
	}
	if t.mandatory {
		verdict = verdict.Mandatory(t.tier.Source)
	}
	return verdict.Asking(t.tier.contact)
}

func (e *Engine) ttl(verdict policy.Verdict) time.Duration {
	switch verdict.Outcome() {
	case policy.Allowed:
		switch {
		case verdict.Doubtful:
			return 0
		case verdict.Warning != "":
			return e.options.DenyTTL
		}
		return e.options.PassTTL
	case policy.Denied:
		return e.options.DenyTTL
	case policy.Undecided:
	}
	return 0
}

// Unanswered returns the result for an image whose configuration is unknown because of
// err: Denied if err is permanent, else Undecided.
func Unanswered(namespace Namespace, ref image.Reference, err error) Result {
	return Result{Namespace: namespace, Reference: ref, Digest: ref.Digest, Verdict: failure(err)}
}

// NamespaceNotFound returns the permanent error for a namespace that does not exist.
func NamespaceNotFound(namespace Namespace) error {
	return PermanentWith(policy.ReasonNamespaceNotFound, fmt.Errorf("namespace %s does not exist", namespace),
		"try again if it was just created, or correct the name of the namespace")
}

// failure returns the verdict on an image whose verification failed with err. err names the
// image.
func failure(err error) policy.Verdict {
	var permanent *PermanentError
	if errors.As(err, &permanent) {
		return policy.Verdict{Reason: err.Error(), Remediation: permanent.Remediation}
	}
	verdict := policy.NotDecided(policy.ObjectRef{}, err.Error())
	found := FindingOf(err)
	verdict.Cause, verdict.Remedy, verdict.Remediation = found.Reason, found.Remedy, found.Remediation
	return verdict
}

// examineManifests decides whether an index that was denied itself is allowed by all of its
// manifests: each must meet the task's rules, even those with a build tool's attestations,
// and there must be at least one. Nested indexes do not count.
func (x *examination) examineManifests(ctx context.Context, t task, subject Subject,
	denied policy.Verdict) (policy.Verdict, []policy.Finding) {
	manifests, err := x.readIndex(ctx, t.tier.Registry, subject)
	switch {
	case errors.Is(err, errNotAnIndex):
		return denied, nil
	case err != nil:
		verdict := failure(err)
		verdict.Policy = t.rules.Source
		return verdict, nil
	}
	t.indexManifests, t.warns = false, false
	entries := make([]Entry, len(manifests))
	var all sync.WaitGroup
	running := make(chan struct{}, manifestsAtOnce)
	for i, manifest := range manifests {
		running <- struct{}{}
		all.Go(func() {
			defer func() {
				if r := recover(); r != nil { // a goroutine other than the image's work, which has its own recover
					entries[i] = Entry{Verdict: policy.NotDecided(t.rules.Source, fmt.Sprintf("internal error: %v", r))}
				}
				<-running
			}()
			entries[i] = x.examine(ctx, []task{t},
				Subject{Reference: subject.Reference.WithDigest(manifest.Digest), Descriptor: manifest, describedBy: t.tier.Registry, stated: true})
		})
	}
	all.Wait()
	return combineManifests(manifests, entries, denied)
}

// combineManifests allows the index if every manifest is allowed.
func combineManifests(manifests []ocispec.Descriptor, entries []Entry, denied policy.Verdict) (policy.Verdict, []policy.Finding) {
	var findings []policy.Finding
	var undecided *policy.Verdict
	for i, entry := range entries {
		findings = append(findings, entry.Findings...)
		switch verdict := entry.Verdict; verdict.Outcome() {
		case policy.Allowed:
		case policy.Undecided:
			verdict.Reason = fmt.Sprintf("%s (for manifest %s of the index)", verdict.Reason, manifests[i].Digest)
			undecided = &verdict
		case policy.Denied:
			why := "because " + verdict.Reason
			if verdict.Reason == denied.Reason {
				why = "for the same reason"
			}
			denied.Reason = fmt.Sprintf("%s; nor is every manifest of the index allowed: %s is not, %s", denied.Reason, manifests[i].Digest, why)
			return denied, findings
		default:
			return policy.Verdict{Reason: "internal error: unknown outcome"}, findings
		}
	}
	if undecided != nil {
		return *undecided, findings
	}
	allowed := entries[0].Verdict // there is at least one
	allowed.Policy, allowed.Reason = denied.Policy, fmt.Sprintf("each of the %d manifests of the index: %s", len(manifests), allowed.Reason)
	return allowed, findings
}

// errNotAnIndex says that the image is a single manifest.
var errNotAnIndex = errors.New("the image is not an index")

// readIndex returns the manifests of an index (OCI image index specification,
// "manifests"), at most MaxIndexManifests and at least one, none of them an index itself.
// The registry only states the media type; the content, which the digest fixes, must agree.
func (x *examination) readIndex(ctx context.Context, registry Registry, subject Subject) (manifests []ocispec.Descriptor, err error) {
	defer x.trace.start("index", subject.Reference.String())()
	locations := locationsOf(registry, subject.Reference)
	descriptor, err := locations.Resolve(ctx, subject.Reference)
	if err != nil {
		return nil, err
	}
	if !intake.IsIndex(descriptor.MediaType) {
		return nil, errNotAnIndex
	}
	if err := x.budget.hold(manifestBytes * min(max(descriptor.Size, 0), MaxManifestBytes)); err != nil {
		return nil, err
	}
	content, err := fetchAt(ctx, locations.Content, descriptor, MaxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	turnErr := x.budget.compute(ctx, func(context.Context) {
		manifests, err = intake.Index(content, descriptor.MediaType, MaxIndexManifests)
	})
	switch {
	case turnErr != nil:
		return nil, turnErr
	case err != nil:
		return nil, unreadable("index", "a well-formed index", descriptor, err)
	}
	return manifests, nil
}

// readManifest reads a manifest that refers to an image (OCI image manifest specification).
func readManifest(content []byte, descriptor ocispec.Descriptor) (ocispec.Manifest, error) {
	manifest, err := intake.Manifest(content, descriptor.MediaType)
	if err != nil {
		return ocispec.Manifest{}, unreadable("manifest", "an OCI manifest", descriptor, err)
	}
	return manifest, nil
}

// unreadable says why a document was not read.
func unreadable(what, wanted string, descriptor ocispec.Descriptor, err error) error {
	if intake.IsLimit(err) {
		return Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s %s %w", what, descriptor.Digest, err))
	}
	return Permanent(policy.ReasonMalformed, fmt.Errorf("%s %s is not %s: it %w", what, descriptor.Digest, wanted, err))
}

// distinct leaves out layers that are equal to one before them: they are one signature.
func distinct(layers []ocispec.Descriptor) []ocispec.Descriptor {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(layers), func(layer ocispec.Descriptor) bool {
		text, err := json.Marshal(layer) // writes annotations in one order
		known := err == nil && seen[string(text)]
		seen[string(text)] = true
		return known
	})
}
