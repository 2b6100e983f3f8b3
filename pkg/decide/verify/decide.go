package verify

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// ranked is a finding with its position in the evidence, so that results do not depend
// on the order in which checks end.
type ranked struct {
	rank    int
	finding policy.Finding
}

// board collects findings from parallel checks and detects when they suffice.
type board struct {
	subject image.Reference
	tasks   []task
	tallies []*policy.Tally // of the tasks; nil for those that are known
	budget  *budget
	settled func() // stops the searches
	// enforced is called when only layers that warn need more evidence. It may be
	// called repeatedly.
	enforced func()

	mu     sync.Mutex
	found  map[check][]ranked
	looked map[Registry][]Looked
	closed bool
}

// check is a verifier that runs on the evidence of one registry. What one layer's
// registry shows never counts for a layer with another one.
type check struct {
	registry Registry
	verifier *Verifier
}

func newBoard(subject image.Reference, tasks []task, budget *budget, settled, enforced func()) *board {
	b := &board{subject: subject, tasks: tasks, tallies: make([]*policy.Tally, len(tasks)), budget: budget, found: map[check][]ranked{}, looked: map[Registry][]Looked{}, settled: settled, enforced: enforced}
	for i, t := range tasks {
		if !t.known {
			b.tallies[i] = t.rules.Tally()
		}
	}
	return b
}

// add records a finding of v on the evidence of a registry, unless the verdict is
// already settled: later findings are only errors from canceled searches. It costs the
// same however many findings there are, and without memory for another one the search
// ends.
func (b *board) add(registry Registry, v *Verifier, rank int, finding policy.Finding) {
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

// look records what the locations of a registry hold.
func (b *board) look(registry Registry, looked []Looked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked[registry] = looked
}

// understand records that a manifest at some locations of a registry has a signature that a
// verifier accepts.
func (b *board) understand(registry Registry, where []Location) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.looked[registry] {
		if l := &b.looked[registry][i]; slices.ContainsFunc(where, func(p Location) bool { return p.Name == l.Repository }) {
			l.Signatures++
		}
	}
}

// listed returns how many manifests of a registry refer to the subject.
func (b *board) listed(registry Registry) (n int) {
	for _, l := range b.looked[registry] {
		n += l.Manifests
	}
	return n
}

// tally counts a proven finding, and ends the searches that need no more.
func (b *board) tally(c check, finding policy.Finding) {
	for i, t := range b.tasks {
		if !t.known && t.layer.Registry == c.registry && slices.Contains(t.verifiers, c.verifier) {
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
// that found nothing at all says so. That is true unless every task is settled: a search
// that ends for any other reason leaves findings that say why.
func (b *board) findings(t task, absent bool) []policy.Finding {
	findings := slices.Clone(t.missing)
	for _, v := range t.verifiers {
		found := slices.Clone(b.found[check{t.layer.Registry, v}])
		if absent && len(found) == 0 {
			findings = append(findings, v.absent(b.subject, b.listed(t.layer.Registry)))
		}
		slices.SortStableFunc(found, func(x, y ranked) int { return x.rank - y.rank })
		for _, r := range found {
			findings = append(findings, r.finding)
		}
	}
	return findings
}

// decide returns the verdict of every task, and all findings, each verifier's once.
func (b *board) decide() ([]policy.Verdict, []policy.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	verdicts := make([]policy.Verdict, len(b.tasks))
	absent := false
	for i, t := range b.tasks {
		verdicts[i] = t.verdict
		if !t.known {
			verdicts[i] = policy.Decide(t.rules, b.findings(t, true))
			if verdicts[i].Outcome() != policy.Allowed {
				absent = true
				verdicts[i].Reason += lookedAt(b.looked[t.layer.Registry])
			}
		}
	}
	var findings []policy.Finding
	seen := map[check]bool{}
	for _, t := range b.tasks {
		shown := t
		shown.verifiers = slices.DeleteFunc(slices.Clone(t.verifiers), func(v *Verifier) bool { return seen[check{t.layer.Registry, v}] })
		for _, v := range shown.verifiers {
			seen[check{t.layer.Registry, v}] = true
		}
		findings = append(findings, b.findings(shown, absent)...)
	}
	return verdicts, findings
}

// combine merges the verdicts of the layers.
func combine(tasks []task, verdict func(int) policy.Verdict) policy.Verdict {
	var all policy.Combined
	for i, t := range tasks {
		all.Add(verdict(i), t.warns)
	}
	return all.Verdict()
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

// failure returns the verdict on an image whose verification ended with err. err names
// the image.
func failure(err error) policy.Verdict {
	var permanent *PermanentError
	if errors.As(err, &permanent) {
		return policy.Verdict{Reason: err.Error(), Remediation: permanent.Remediation}
	}
	return policy.NotDecided(policy.ObjectRef{}, err.Error())
}
