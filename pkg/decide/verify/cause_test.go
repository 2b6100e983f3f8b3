package verify

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// A registry is to blame for what it did not answer, and for nothing else.
func TestOnlyWhatARegistryCausedIsItsFault(t *testing.T) {
	fails := errors.New("503")
	busy := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	hangs := func(ctx context.Context) error { defer Awaiting(ctx, "r.example.com")(); return busy(ctx) }
	within := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	leaves := func(after time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(after, cancel)
			return ctx, cancel
		}
	}
	for name, row := range map[string]struct {
		asks func(context.Context) (context.Context, context.CancelFunc)
		work func(context.Context) error
		want policy.Reason
	}{
		"it fails":                          {within(time.Minute), func(context.Context) error { return fails }, policy.ReasonUnreachable},
		"it hangs longer than a request":    {within(2 * time.Second), hangs, policy.ReasonUnreachable},
		"it hangs longer than the work":     {within(time.Minute), hangs, policy.ReasonUnreachable},
		"the request ends in our own queue": {within(2 * time.Second), busy, policy.ReasonUnfinished},
		"the registry answered, and Landwaiter is busy": {within(2 * time.Second), func(ctx context.Context) error {
			Awaiting(ctx, "r.example.com")()
			return busy(ctx)
		}, policy.ReasonUnfinished},
		"the client leaves":                                {leaves(time.Second / 2), hangs, policy.ReasonUnfinished},
		"the client waits, and gives up":                   {leaves(2 * time.Second), hangs, policy.ReasonUnreachable},
		"the client gives up while Landwaiter is busy":     {leaves(2 * time.Second), busy, policy.ReasonUnfinished},
		"the request waited in a process that stood still": {within(-time.Minute), hangs, policy.ReasonUnfinished},
		"the work was in a process that stood still": {within(time.Minute), func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(30 * time.Second) // virtual: nobody noticed
			return fails
		}, policy.ReasonUnfinished},
		"too much is in flight": {within(time.Minute), func(context.Context) error { return fmt.Errorf("x: %w", errOverloaded) }, policy.ReasonUnfinished},
		"there is no memory":    {within(time.Minute), func(context.Context) error { return (&budget{}).full() }, policy.ReasonUnfinished},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := NewEngine(none{}, time.Now, Options{WorkTimeout: 5 * time.Second})
				ctx, cancel := row.asks((&trace{now: time.Now}).in(t.Context()))
				defer cancel()
				_, err := e.once(ctx, &Config{Namespace: "team-a"}, Key{Image: "app"}, mode{}, func(ctx context.Context) (Entry, time.Duration, error) {
					return Entry{}, 0, row.work(ctx)
				})
				require.Error(t, err)
				require.Equal(t, row.want, failure(err).Cause, err)
				require.Equal(t, policy.Undecided, failure(err).Outcome())
				time.Sleep(time.Minute) // the work ends
			})
		})
	}
}

// Whoever waits is told what for, also if another caller began the work.
func TestARequestWhoseTimeIsOverNamesTheRegistryThatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(none{}, time.Now, Options{WorkTimeout: 5 * time.Second})
		ask := func(hosts ...string) error {
			ctx, cancel := context.WithTimeout((&trace{now: time.Now}).in(t.Context()), time.Second)
			defer cancel()
			_, err := e.once(ctx, &Config{Namespace: "team-a"}, Key{Image: "r.example.com/app:v1"}, mode{}, func(ctx context.Context) (Entry, time.Duration, error) {
				for _, host := range hosts {
					defer Awaiting(ctx, host)()
				}
				<-ctx.Done()
				return Entry{}, 0, ctx.Err()
			})
			return err
		}
		const says = "r.example.com/app:v1 was not finished in time: r.example.com and mirror.example.com did not answer in time; try again"
		require.EqualError(t, ask("r.example.com", "mirror.example.com", "r.example.com"), says)
		require.EqualError(t, ask(), says, "it joined the work")
		time.Sleep(time.Minute) // the work ends
		require.EqualError(t, ask(), "r.example.com/app:v1 was not finished in time: it waited for Landwaiter, not for a registry; try again")
		time.Sleep(time.Minute)
	})
}

func TestWhoeverJoinsLearnsThatARegistryAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(none{}, time.Now, Options{})
		traces := [2]*trace{{now: time.Now}, {now: time.Now}}
		for _, own := range traces {
			go func() {
				_, _ = e.once(own.in(t.Context()), &Config{Namespace: "team-a"}, Key{Image: "app"}, mode{}, func(ctx context.Context) (Entry, time.Duration, error) {
					time.Sleep(time.Second)
					traceOf(ctx).answerNow()
					return Entry{}, 0, nil
				})
			}()
		}
		time.Sleep(2 * time.Second)
		require.NotZero(t, traces[0].answered())
		require.Equal(t, traces[0].answered(), traces[1].answered())
	})
}
