package verify

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// budget is what the work on one image may use: its account's share of the memory for
// evidence, and processor time in turns with other accounts.
type budget struct {
	account Account
	memory  *fair.Hold[Account]
	turns   *fair.Turns[Account]

	refused atomic.Bool // some evidence found no memory, and is Unknown
	lost    atomic.Bool // a finding found no memory, and is gone
}

func (e *Engine) budget(account Account) *budget {
	return &budget{account: account, memory: e.memory.Hold(account), turns: e.turns}
}

// hold reserves memory for n bytes until the work ends. Its error is transient.
func (b *budget) hold(n int64) error {
	if !b.memory.Take(n) {
		b.refused.Store(true)
		return fmt.Errorf("%s has too much evidence in memory: %w", b.account.Describe(), errOverloaded)
	}
	return nil
}

// release returns all memory. Nothing that was held may be used any more.
func (b *budget) release() { b.memory.Release() }

// compute runs f in a turn of the account, with a context for [Step]. It fails without f
// if ctx ends first.
func (b *budget) compute(ctx context.Context, f func(context.Context)) error {
	turn, err := b.turns.Take(ctx, b.account)
	if err != nil {
		return fmt.Errorf("wait for a turn of %s: %w", b.account, err)
	}
	defer turn.Leave()
	f(withTurn(ctx, turn))
	return nil
}

// turnKey is the context key of the turn in which a [Checker] runs. Like a deadline, it says
// when to work, and never for whom.
type turnKey struct{}

func withTurn(ctx context.Context, turn *fair.Turn[Account]) context.Context {
	return context.WithValue(ctx, turnKey{}, turn)
}

// Step lets other accounts go first. A [Checker] calls it between the steps of its work,
// such as two keys, each of which takes a millisecond or so. It fails if ctx has ended.
func Step(ctx context.Context) error {
	turn, _ := ctx.Value(turnKey{}).(*fair.Turn[Account])
	return turn.Yield(ctx)
}

// plan is [Config.plan] in a turn of the account: a tenant's patterns take processor
// time too.
func (e *Engine) plan(ctx context.Context, config *Config, ref image.Reference) (tasks []task, err error) {
	err = e.budget(config.account()).compute(ctx, func(context.Context) { tasks = config.plan(ref) })
	if err != nil {
		return nil, fmt.Errorf("%s was not finished in time, try again: %w", ref, err)
	}
	return tasks, nil
}
