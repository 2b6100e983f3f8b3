package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// mode says whether cached results may be used, and at which priority. The zero value
// is what admission uses.
type mode struct {
	refresh     bool // bypass the cache
	lowPriority bool // use spare capacity only
}

// begin takes a place for one image of config's account, which [fair.Gate.Return]
// gives back.
func (e *Engine) begin(config *Config, how mode) error {
	account, most := config.account(), int64(cmp.Or(max(config.Limits.InFlight, 0), e.options.InFlightPerAccount))
	switch {
	case how.lowPriority && !e.limit.TakeSpare(account, 1, most):
		return fmt.Errorf("%s: %w", account, errLowPriority)
	case !how.lowPriority && !e.limit.Take(account, 1, most):
		return fmt.Errorf("%s has too many images in flight: %w", account.Describe(), errOverloaded)
	}
	return nil
}

// known returns the cached entry for key, unless the mode bypasses the cache.
func (e *Engine) known(ctx context.Context, key Key, how mode) (Entry, bool) {
	if how.refresh {
		return Entry{}, false
	}
	return e.cache.Get(ctx, key)
}

// once runs work for key, or joins the work that is in flight for it, and waits until
// ctx ends. The work outlives its first caller, so that one caller's deadline is not
// another's failure and a retry finds a warm cache. The account of config pays.
func (e *Engine) once(ctx context.Context, config *Config, key Key, how mode, work func(context.Context) (Entry, time.Duration, error)) (Entry, error) {
	for {
		entry, err := e.join(ctx, config, key, how, work)
		if how.lowPriority || !errors.Is(err, errLowPriority) {
			return entry, err
		}
		// We joined low-priority work that was refused; at our priority there may be room.
	}
}

// join is one try of once.
func (e *Engine) join(ctx context.Context, config *Config, key Key, how mode, work func(context.Context) (Entry, time.Duration, error)) (Entry, error) {
	flight := e.flights.DoChan(key.String(), func() (any, error) {
		if err := e.begin(config, how); err != nil {
			return Entry{}, fmt.Errorf("%s: %w", key.Image, err)
		}
		defer e.limit.Return(config.account(), 1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.options.WorkTimeout)
		defer cancel()
		return e.run(ctx, key, work)
	})
	select {
	case done := <-flight:
		entry, _ := done.Val.(Entry) // the zero Entry denies
		return entry, done.Err
	case <-ctx.Done():
		return Entry{}, fmt.Errorf("%s was not finished in time, try again: %w", key.Image, ctx.Err())
	}
}

// run does the work and caches its result. A panic below becomes an error: it must
// neither end the process nor admit anything.
func (e *Engine) run(ctx context.Context, key Key, work func(context.Context) (Entry, time.Duration, error)) (entry Entry, err error) {
	defer func() {
		if r := recover(); r != nil {
			entry, err = Entry{}, fmt.Errorf("%s: internal error: %v", key.Image, r)
		}
	}()
	entry, ttl, err := work(ctx)
	if err == nil && ttl > 0 {
		e.cache.Put(ctx, key, entry, ttl)
	}
	return entry, err
}

// errOverloaded is transient: a retry may find capacity.
var errOverloaded = errors.New("overloaded, try again")

// errLowPriority refuses low-priority work: what is left is for callers who wait.
var errLowPriority = fmt.Errorf("no spare capacity: %w", errOverloaded)
