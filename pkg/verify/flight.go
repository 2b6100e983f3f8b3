package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// mode says whether cached results may be used, and at which priority. The zero value
// is what admission uses.
type mode struct {
	refresh     bool // bypass the cache
	lowPriority bool // use spare capacity only
}

func (m mode) acquire(l *limiter, account Account, most int) error {
	if m.lowPriority {
		return l.acquireLow(account, most)
	}
	return l.acquire(account, most)
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
	account := config.account()
	flight := e.flights.DoChan(key.String(), func() (any, error) {
		if err := how.acquire(e.limit, account, config.Limits.InFlight); err != nil {
			return Entry{}, fmt.Errorf("%s: %w", key.Image, err)
		}
		defer e.limit.release(account)
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
var errOverloaded = errors.New("overloaded: too many images are in flight, try again")

// errLowPriority refuses low-priority work: what is left is for callers who wait.
var errLowPriority = fmt.Errorf("no spare capacity: %w", errOverloaded)

// limiter bounds the images in flight, in all and per account. An account may have at
// most as many in flight as are left for others (dynamic thresholds, Choudhury and
// Hahne 1998), so a new account finds room however many flood. It never waits: the
// caller has a deadline and had better retry than queue.
type limiter struct {
	mu          sync.Mutex
	total, each int
	inFlight    int
	inFlightOf  map[Account]int
}

func newLimiter(total, each int) *limiter {
	return &limiter{total: total, each: each, inFlightOf: map[Account]int{}}
}

// acquire admits one image of an account that may have each in flight; 0 is the default
// of every account.
func (l *limiter) acquire(account Account, each int) error {
	each = cmp.Or(max(each, 0), l.each)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight >= l.total {
		return errOverloaded
	}
	if have := l.inFlightOf[account]; have >= each || (have > 0 && have >= l.total-l.inFlight) {
		return fmt.Errorf("%s: %w", account, errOverloaded)
	}
	l.add(account)
	return nil
}

// acquireLow is acquire at low priority: it admits only while less than half of the
// images in flight are taken, of all and of the account's own.
func (l *limiter) acquireLow(account Account, each int) error {
	each = cmp.Or(max(each, 0), l.each)
	l.mu.Lock()
	defer l.mu.Unlock()
	if 2*l.inFlight >= l.total || 2*l.inFlightOf[account] >= each {
		return fmt.Errorf("%s: %w", account, errLowPriority)
	}
	l.add(account)
	return nil
}

func (l *limiter) add(account Account) {
	l.inFlight++
	l.inFlightOf[account]++
}

func (l *limiter) release(account Account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	if l.inFlightOf[account]--; l.inFlightOf[account] == 0 {
		delete(l.inFlightOf, account)
	}
}
