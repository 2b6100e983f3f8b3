package verify

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/policy"
)

// decided returns the verdict if the tasks can be answered without evidence:
// one denies, or all allow.
func decided(tasks []task) (policy.Verdict, bool) {
	for _, t := range tasks {
		if t.known && t.softened(t.verdict).Outcome != policy.Allowed {
			return t.verdict, true
		}
	}
	if i := slices.IndexFunc(tasks, func(t task) bool { return !t.known }); i >= 0 {
		return policy.Verdict{}, false
	}
	return combine(tasks, func(i int) policy.Verdict { return tasks[i].verdict }), true
}

// softened is what a verdict on t comes to if t only warns.
func (t task) softened(verdict policy.Verdict) policy.Verdict {
	if t.warns {
		return verdict.Warn()
	}
	return verdict
}

// failed is the verdict on an image whose verification ended with err. It is a
// warning if nothing but policies that warn asked for evidence.
func failed(tasks []task, err error) policy.Verdict {
	verdict := failure(err)
	asked := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.known })
	if len(asked) == 0 || slices.ContainsFunc(asked, func(t task) bool { return !t.warns }) {
		return verdict
	}
	verdict.Policy = asked[0].rules.Source
	return verdict.Warn()
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

// missing are the findings that were known without evidence.
func missing(tasks []task) []policy.Finding {
	var findings []policy.Finding
	for _, t := range tasks {
		findings = append(findings, t.missing...)
	}
	return findings
}

// registryOf returns the registry of the first task that needs one: the
// namespace's own, unless its policy asks for no evidence.
func registryOf(tasks []task) Registry {
	for _, t := range tasks {
		if !t.known {
			return t.layer.Registry
		}
	}
	return nil
}

// examine gathers the evidence for subject, lets every verifier look at it, and
// decides. Layers with the same registry look at the same evidence.
func (e *Engine) examine(work context.Context, tasks []task, subject Subject, trace *trace) Entry {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	board := &board{tasks: tasks, found: map[*Verifier][]ranked{}, settled: cancel}
	var searches sync.WaitGroup
	for registry, verifiers := range byRegistry(tasks) {
		s := &search{registry: registry, verifiers: verifiers, subject: subject, board: board, trace: trace, now: e.now}
		searches.Go(func() { s.run(ctx) })
	}
	searches.Wait()
	defer trace.start("decide", "")()
	verdicts, findings := board.decide()
	verdict := combine(tasks, func(i int) policy.Verdict {
		if t := tasks[i]; t.parts && !t.known && verdicts[i].Outcome == policy.Denied {
			appealed, more := e.examineParts(work, t, subject, verdicts[i], trace)
			findings = append(findings, more...)
			return appealed
		}
		return verdicts[i]
	})
	return Entry{Verdict: verdict, Findings: findings}
}

// byRegistry groups the verifiers that have to run by where they look.
func byRegistry(tasks []task) map[Registry][]*Verifier {
	groups := map[Registry][]*Verifier{}
	for _, t := range tasks {
		if t.known {
			continue
		}
		for _, v := range t.verifiers {
			if group := groups[t.layer.Registry]; !slices.Contains(group, v) {
				groups[t.layer.Registry] = append(group, v)
			}
		}
	}
	return groups
}

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
