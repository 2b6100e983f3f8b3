package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// examination is the work on one image, within the budget of its account.
type examination struct {
	budget *budget
	trace  *trace
	now    func() time.Time
}

// run examines subject. It fails if the account has no memory left for the evidence: a
// verdict without all findings must not allow, and one without all evidence must not
// deny.
func (x *examination) run(ctx context.Context, tasks []task, subject Subject) (Entry, error) {
	entry := x.examine(ctx, tasks, subject)
	if x.budget.lost.Load() || x.budget.refused.Load() && entry.Verdict.Outcome() != policy.Allowed {
		return Entry{}, fmt.Errorf("%s: %s has too much evidence in memory: %w", subject.Reference, x.budget.account.Describe(), errOverloaded)
	}
	return entry, nil
}

// examine gathers the evidence for subject, runs every verifier on it, and decides.
// Layers with the same registry share the evidence. Verifiers that only warnings need
// have a separate search, so that they do not consume the limits of the others; it ends
// at most [warnGrace] after everything else is decided.
func (x *examination) examine(work context.Context, tasks []task, subject Subject) Entry {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	grace := sync.OnceFunc(func() { time.AfterFunc(warnGrace, cancel) })
	board := newBoard(subject.Reference, tasks, x.budget, cancel, grace)
	var enforced, all sync.WaitGroup
	warned := false // some search is for warnings only
	for group, verifiers := range searches(tasks) {
		s := &search{examination: x, registry: group.registry, verifiers: verifiers, subject: subject, board: board}
		if group.warns {
			warned = true
		} else {
			enforced.Add(1)
		}
		all.Go(func() {
			if !group.warns {
				defer enforced.Done()
			}
			s.run(ctx)
		})
	}
	enforced.Wait()
	if warned {
		grace()
	}
	all.Wait()
	x.trace.look(board)
	var verdicts []policy.Verdict
	var findings []policy.Finding
	if err := x.budget.compute(work, func(context.Context) {
		defer x.trace.start("decide", "")()
		verdicts, findings = board.decide()
	}); err != nil {
		return Entry{Verdict: failed(tasks, fmt.Errorf("%s was not finished in time, try again: %w", subject.Reference, err))}
	}
	verdict := combine(tasks, func(i int) policy.Verdict {
		t := tasks[i]
		if !t.indexManifests || t.known || verdicts[i].Outcome() != policy.Denied {
			return verdicts[i]
		}
		ctx := work
		if t.warns {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(work, warnGrace)
			defer cancel()
		}
		appealed, more := x.examineManifests(ctx, t, subject, verdicts[i])
		findings = append(findings, more...)
		return appealed
	})
	return Entry{Verdict: verdict, Findings: findings}
}
