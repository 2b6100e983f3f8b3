package verify

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// examination is the work on one image, within the budget of its account.
type examination struct {
	config part
	cache  Cache
	budget *budget
	trace  *trace
	now    func() time.Time
	fresh  bool // use no kept list
	keeper keeper
	// allows and denies are the maximum ages of a verdict.
	allows, denies time.Duration
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

// examine gathers the evidence for subject, runs every verifier on it, and decides. Tiers
// with the same registry share the evidence. Verifiers that only warnings need have a
// separate search, so that they do not consume the limits of the others. It ends at most
// [warnGrace] after everything else is decided.
func (x *examination) examine(work context.Context, tasks []task, subject Subject) Entry {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	grace := sync.OnceFunc(func() { time.AfterFunc(warnGrace, cancel) })
	board := newBoard(subject.Reference, tasks, x.budget, cancel, grace)
	var enforced, all sync.WaitGroup
	warned := false // some search is for warnings only
	groups := searches(tasks)
	keeps := x.keepAll(ctx, groups, subject)
	for group, verifiers := range groups {
		s := &search{examination: x, registry: group.registry, verifiers: verifiers, subject: subject, board: board, kept: keeps[group.registry]}
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
	if err := x.budget.compute(work, func(ctx context.Context) {
		defer x.trace.start("decide", "")()
		verdicts, findings = board.decide(ctx)
	}); err != nil {
		return Entry{Verdict: failed(tasks, fmt.Errorf("%s was not finished in time: %w; try again", subject.Reference, err))}
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

// pace is the processor time of an account, which takes turns with others.
type pace struct {
	account Account
	turns   *fair.Turns[Account]
}

// budget is the share of the account's evidence memory and processor time that the work on
// one image may use.
type budget struct {
	pace
	memory *fair.Hold[Account]
	// imageBytes bounds the blobs of the image, and reserve the memory of one check.
	imageBytes, reserve int64
	larges              *fair.Turns[Account]

	checked atomic.Int64 // time spent checking signatures
	refused atomic.Bool  // some evidence found no memory, and is Unknown
	lost    atomic.Bool  // a finding found no memory, and is lost
}

func (e *Engine) pace(account Account) pace { return pace{account: account, turns: e.turns} }

func (e *Engine) budget(account Account) *budget {
	return &budget{pace: e.pace(account), memory: e.memory.Hold(account), imageBytes: e.imageBytes, larges: e.larges,
		reserve: max(e.options.EvidenceBytes/9*reserveNinths, largeCheck)}
}

// hold reserves memory for n bytes until the work ends. Its error is transient.
func (b *budget) hold(n int64) error {
	if !b.memory.Take(n) {
		return b.full()
	}
	return nil
}

func (b *budget) full() error {
	b.refused.Store(true)
	return fmt.Errorf("%s has too much evidence in memory: %w", b.account.Describe(), errOverloaded)
}

// errCheckTime ends the checks of an image. It never becomes a finding, see [search.check].
var errCheckTime = fmt.Errorf("checking the signatures of this image takes longer than %s", maxCheckTime)

// over reports whether the checks of the image have used up their time. One check runs at a time.
func (b *budget) over(turn *fair.Turn[Account]) bool {
	return time.Duration(b.checked.Load())+turn.Used() > maxCheckTime
}

// release returns all memory. Callers must not use it afterwards.
func (b *budget) release() { b.memory.Release() }

// take takes a turn of the account. It returns a context for [Step] in it, and a function that
// leaves the turn. It fails if ctx ends first.
func (p pace) take(ctx context.Context) (context.Context, func(), error) {
	turn, err := p.turns.Take(ctx, p.account)
	if err != nil {
		return nil, nil, Unfinished(fmt.Errorf("wait for a turn of %s: %w", p.account, err))
	}
	return withTurn(ctx, checking{turn: turn}), turn.Leave, nil
}

// compute runs f in a turn of the account, with a context for [Step]. If ctx ends first, it
// fails without running f.
func (p pace) compute(ctx context.Context, f func(context.Context)) error {
	ctx, leave, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer leave()
	f(ctx)
	return nil
}

// paceKey is the context key of the pace of a verification.
type paceKey struct{}

func (p pace) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, paceKey{}, p)
}

// TakeTurn takes a turn of the account that pays for the verification of ctx. It returns a
// context for [Step], and a function that leaves the turn in the same goroutine. A [Repository]
// takes a turn to process a registry's answer, whose size the registry chooses, and does not
// wait for the registry meanwhile. TakeTurn fails if ctx ends first. Outside a verification it
// takes nothing.
func TakeTurn(ctx context.Context) (context.Context, func(), error) {
	if p, ok := ctx.Value(paceKey{}).(pace); ok {
		return p.take(ctx)
	}
	return ctx, func() {}, nil
}

// turnKey is the context key of the turn in which a [Checker] runs. Like a deadline, it says
// when to work, and never for whom.
type turnKey struct{}

// checking is a turn, and the budget of the image that it checks, nil in other turns.
type checking struct {
	turn   *fair.Turn[Account]
	budget *budget
	held   *held // by the check
}

// held is the memory of one check, until it ends.
type held struct {
	bytes int64
	small *fair.Hold[Account]
	large *fair.Turn[Account] // nil unless it takes more than largeCheck
}

func (b *budget) check(turn *fair.Turn[Account]) checking {
	return checking{turn: turn, budget: b, held: &held{small: b.memory.Another()}}
}

// end releases the memory of a check. Further calls do nothing.
func (c checking) end() {
	c.held.small.Release()
	if c.held.large != nil {
		c.held.large.Leave()
	}
}

func withTurn(ctx context.Context, in checking) context.Context {
	return context.WithValue(ctx, turnKey{}, in)
}

// fixTooLarge is the advice for evidence that exceeds a limit.
const fixTooLarge = "make the evidence smaller, or ask a cluster admin to raise --limit evidence-bytes"

// Hold reserves n bytes of memory for evidence until the [Checker] of ctx returns. A Checker calls it before a
// library reads evidence that needs n bytes. Its error is permanent if n is more than one check may take, and
// otherwise transient. Large checks wait for each other, and accounts take turns. Outside a Checker it reserves
// nothing.
func Hold(ctx context.Context, n int64) error {
	in, _ := ctx.Value(turnKey{}).(checking)
	if in.held == nil {
		return nil
	}
	total := in.held.bytes + n
	switch {
	case total > in.budget.reserve:
		return PermanentWith(policy.ReasonLimitExceeded,
			fmt.Errorf("checking the evidence takes %d bytes of memory, the limit is %d", total, in.budget.reserve), fixTooLarge)
	case total > largeCheck && in.held.large == nil:
		if err := in.alone(ctx); err != nil {
			return err
		}
	case total <= largeCheck && !in.held.small.Take(n):
		return in.budget.full()
	}
	in.held.bytes = total
	return nil
}

// alone waits until no other check takes much memory. It leaves the turn meanwhile.
func (c checking) alone(ctx context.Context) error {
	c.turn.Leave()
	large, err := c.budget.larges.Take(ctx, c.budget.account)
	if err != nil {
		return Unfinished(fmt.Errorf("wait for memory: %w", err))
	}
	c.held.large = large
	return c.turn.Enter(ctx)
}

// Step yields to other accounts. A [Checker] calls it between the steps of its work, such as two keys,
// each of which takes about a millisecond. It fails if ctx has ended, or if the checks of the image
// have used up their time.
func Step(ctx context.Context) error {
	in, _ := ctx.Value(turnKey{}).(checking)
	if in.budget != nil && in.budget.over(in.turn) {
		return errCheckTime
	}
	return in.turn.Yield(ctx)
}

// compute matches rules or exceptions in a turn of config's account. It fails without running f if ctx ends first, or
// if how never waits and no turn is free.
func (e *Engine) compute(ctx context.Context, config *Config, how mode, f func()) error {
	if !how.recall {
		return pace{config.account(), e.plans}.compute(ctx, func(context.Context) { f() })
	}
	turn := e.plans.Try(config.account())
	if turn == nil {
		return errOverloaded
	}
	defer turn.Leave()
	f()
	return nil
}

// plan is [part.plan] in a turn of the account: a tenant's patterns take processor
// time too.
func (e *Engine) plan(ctx context.Context, config part, ref image.Reference) (tasks []task, err error) {
	err = e.compute(ctx, config.Config, mode{}, func() { tasks = config.plan(ref) })
	if err != nil {
		return nil, fmt.Errorf("%s was not finished in time: %w; try again", ref, err)
	}
	return tasks, nil
}
