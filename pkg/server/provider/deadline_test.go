package provider

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The oracle is the standard library's: whatever happens, and whether somebody waits or only asks,
// both end at the same time for the same reason.
func TestADeadlineIsThatOfTheStandardLibrary(t *testing.T) {
	type made func(context.Context, time.Time) (context.Context, context.CancelFunc)
	for about, c := range map[string]struct {
		parentAfter, after, cancelAfter, leaveAfter time.Duration // 0 never
	}{
		"it comes":                        {after: time.Second},
		"it has passed":                   {after: -time.Second},
		"the parent's comes before":       {parentAfter: time.Second, after: 2 * time.Second},
		"the parent's comes later":        {parentAfter: 3 * time.Second, after: 2 * time.Second},
		"the work is done before":         {after: 2 * time.Second, cancelAfter: time.Second},
		"the client leaves before":        {after: 2 * time.Second, leaveAfter: time.Second},
		"the client leaves when it comes": {after: time.Second, leaveAfter: 2 * time.Second},
	} {
		for _, waits := range []bool{false, true} {
			run := func(make made) (ended time.Duration, deadline time.Duration, err, child error) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					parent, leave := context.WithCancel(t.Context())
					defer leave()
					if c.parentAfter > 0 {
						var cancel context.CancelFunc
						parent, cancel = context.WithDeadline(parent, began.Add(c.parentAfter))
						defer cancel()
					}
					ctx, cancel := make(parent, began.Add(c.after))
					defer cancel()
					at, ok := ctx.Deadline()
					require.True(t, ok)
					deadline = at.Sub(began)
					if waits {
						_ = ctx.Done()
					}
					derived, drop := context.WithCancel(ctx)
					defer drop()
					for do, after := range map[*context.CancelFunc]time.Duration{&cancel: c.cancelAfter, &leave: c.leaveAfter} {
						if after > 0 {
							time.AfterFunc(after, *do)
						}
					}
					for ctx.Err() == nil {
						time.Sleep(3 * time.Millisecond) // never at the moment itself
					}
					synctest.Wait()
					ended, err, child = time.Since(began), ctx.Err(), derived.Err()
					<-ctx.Done()
				})
				return ended, deadline, err, child
			}
			ended, deadline, err, child := run(withDeadline)
			wantEnded, wantDeadline, want, wantChild := run(context.WithDeadline)
			require.Equal(t, wantEnded, ended, about)
			require.Equal(t, wantDeadline, deadline, about)
			require.Equal(t, want, err, about)
			require.Equal(t, wantChild, child, about)
		}
	}
}

func TestWorkThatIsDoneEndsItsDeadline(t *testing.T) {
	ctx, cancel := withDeadline(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, ctx.Err())
	cancel()
	require.Equal(t, context.Canceled, ctx.Err())
	<-ctx.Done() // asked for afterwards
}
