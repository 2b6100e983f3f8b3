package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// mode says whether cached results may be used, and at which priority. The zero value
// is what admission uses.
type mode struct {
	refresh     bool // bypass the cache
	lowPriority bool // use spare capacity only
	recall      bool // never wait
	unproven    bool // assume that there is no evidence
}

// begin takes a slot for one image of config's account; [fair.Gate.Return] returns it.
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

// once runs work for key, or joins the work that is in flight for it, and waits until ctx
// ends. The work outlives its first caller, so that one caller's deadline does not fail the
// others and a retry finds a warm cache. The account of config pays.
func (e *Engine) once(ctx context.Context, config *Config, key Key, how mode,
	work func(context.Context) (Entry, time.Duration, error)) (Entry, error) {
	for {
		entry, err := e.join(ctx, config, key, how, work)
		if how.lowPriority || !errors.Is(err, errLowPriority) {
			return entry, err
		}
		// We joined low-priority work that was refused; at our priority there may be room.
	}
}

// join is one try of once.
func (e *Engine) join(ctx context.Context, config *Config, key Key, how mode,
	work func(context.Context) (Entry, time.Duration, error)) (Entry, error) {
	flight := e.flights.DoChan(key.String(), func() (any, error) {
		if err := e.begin(config, how); err != nil {
			return landed{}, fmt.Errorf("%s: %w", key.Image, err)
		}
		defer e.limit.Return(config.account(), 1)
		own := traceOf(ctx)
		e.traces.Store(key.String(), own)
		defer e.traces.Delete(key.String())
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.options.WorkTimeout)
		defer cancel()
		entry, err := e.run(ctx, key, work)
		if open := err != nil && !IsPermanent(err) || err == nil && entry.Verdict.Outcome() == policy.Undecided; open && StoodStill(ctx) {
			return landed{}, Unfinished(fmt.Errorf("%s was not finished, because Landwaiter stood still; try again", key.Image))
		}
		return landed{entry, own.answered()}, err
	})
	select {
	case done := <-flight:
		end, _ := done.Val.(landed) // the zero Entry denies
		traceOf(ctx).answer(end.answered)
		return end.entry, done.Err
	case <-ctx.Done():
		running, _ := e.traces.Load(key.String())
		work, _ := running.(*trace)
		return Entry{}, late(ctx, key.Image, work)
	}
}

// landed is the result of a flight, for all callers that wait for it.
type landed struct {
	entry    Entry
	answered time.Time // as in [Result]
}

// slow is how long a registry may take before it is why a caller gave up. Callers that wait for many images, as
// Gatekeeper does, give up without a deadline that we know.
const slow = time.Second

// late returns the error of a caller that does not wait any longer for the work on an image.
func late(ctx context.Context, image string, work *trace) error {
	gaveUp := errors.Is(ctx.Err(), context.Canceled)
	some := time.Duration(0)
	if gaveUp {
		some = slow
	}
	switch hosts := work.waitsFor(some); {
	case StoodStill(ctx) || gaveUp && len(hosts) == 0:
		return Unfinished(fmt.Errorf("%s was not finished in time: %w; try again", image, ctx.Err()))
	case len(hosts) > 0:
		return fmt.Errorf("%s was not finished in time: %s did not answer in time; try again", image, strings.Join(hosts, " and "))
	}
	return Unfinished(fmt.Errorf("%s was not finished in time: it waited for Landwaiter, not for a registry; try again", image))
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
var errOverloaded = Unfinished(errors.New("overloaded, try again"))

// errLowPriority refuses low-priority work: the remaining capacity is for callers who wait.
var errLowPriority = fmt.Errorf("no spare capacity: %w", errOverloaded)
