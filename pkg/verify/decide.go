package verify

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// ranked is a finding with its place among the evidence, so that results do
// not depend on which check happened to end first.
type ranked struct {
	rank    int
	finding policy.Finding
}

// board collects findings from parallel checks and notices when they suffice.
type board struct {
	tasks   []task
	settled func() // stops the searches

	mu     sync.Mutex
	found  map[*Verifier][]ranked
	closed bool
}

// add notes what v found, unless the verdict is already settled: what comes
// later is only the echo of stopping.
func (b *board) add(v *Verifier, rank int, finding policy.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.found[v] = append(b.found[v], ranked{rank: rank, finding: v.finding(finding)})
	for _, t := range b.tasks {
		if !t.known && !t.rules.Settled(b.findings(t)) {
			return
		}
	}
	b.closed = true
	b.settled()
}

// findings returns what the verifiers of one task found, in order.
func (b *board) findings(t task) []policy.Finding {
	findings := slices.Clone(t.missing)
	for _, v := range t.verifiers {
		found := slices.Clone(b.found[v])
		slices.SortStableFunc(found, func(x, y ranked) int { return x.rank - y.rank })
		for _, r := range found {
			findings = append(findings, r.finding)
		}
	}
	return findings
}

// decide returns the verdict of every task on what was found, and the findings of
// all, each verifier's once.
func (b *board) decide() ([]policy.Verdict, []policy.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	verdicts := make([]policy.Verdict, len(b.tasks))
	var findings []policy.Finding
	seen := map[*Verifier]bool{}
	for i, t := range b.tasks {
		verdicts[i] = t.verdict
		if !t.known {
			verdicts[i] = policy.Decide(t.rules, b.findings(t))
		}
		shown := t
		shown.verifiers = slices.DeleteFunc(slices.Clone(t.verifiers), func(v *Verifier) bool { return seen[v] })
		for _, v := range shown.verifiers {
			seen[v] = true
		}
		findings = append(findings, b.findings(shown)...)
	}
	return verdicts, findings
}

// combine joins the verdicts of the layers: one that denies denies all, else one
// that is undecided leaves all undecided. No layers, no pass.
func combine(tasks []task, verdict func(int) policy.Verdict) policy.Verdict {
	var all policy.Verdict
	var undecided *policy.Verdict
	for i, t := range tasks {
		v := t.softened(verdict(i))
		switch v.Outcome {
		case policy.Allowed:
			if i == 0 {
				all = v
			} else {
				all.Reason += "; " + v.Reason
				all.Doubtful = all.Doubtful || v.Doubtful
				all.Warning = strings.Join(slices.DeleteFunc([]string{all.Warning, v.Warning}, func(w string) bool { return w == "" }), "; ")
			}
		case policy.Undecided:
			if undecided == nil {
				undecided = &v
			}
		case policy.Denied:
			return v
		default:
			return policy.Verdict{Reason: "internal error: unknown outcome"}
		}
	}
	if undecided != nil {
		return *undecided
	}
	return all
}

func (e *Engine) ttl(verdict policy.Verdict) time.Duration {
	switch verdict.Outcome {
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

// failure is the verdict on an image whose verification ended with err, which
// names the image.
func failure(err error) policy.Verdict {
	outcome := policy.Undecided
	if IsPermanent(err) {
		outcome = policy.Denied
	}
	return policy.Verdict{Outcome: outcome, Reason: err.Error()}
}
