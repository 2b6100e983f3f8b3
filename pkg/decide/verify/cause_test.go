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
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	within := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	for name, row := range map[string]struct {
		asks func(context.Context) (context.Context, context.CancelFunc)
		work func(context.Context) error
		want policy.Reason
	}{
		"it fails":                       {within(time.Minute), func(context.Context) error { return fails }, policy.ReasonUnreachable},
		"it hangs longer than a request": {within(2 * time.Second), hangs, policy.ReasonUnreachable},
		"it hangs longer than the work":  {within(time.Minute), hangs, policy.ReasonUnreachable},
		"the client leaves": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, hangs, policy.ReasonUnfinished},
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
				ctx, cancel := row.asks(t.Context())
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
