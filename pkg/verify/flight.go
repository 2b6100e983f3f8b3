package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// mode is how an answer may be come by. The zero value is that of an admission.
type mode struct {
	fresh bool // what is cached is no answer
	spare bool // only in a place that nobody is likely to miss
}

func (m mode) acquire(l *limiter, account Account, places int) error {
	if m.spare {
		return l.acquireSpare(account, places)
	}
	return l.acquire(account, places)
}

// known is what the cache has for key, unless it is to be found out anew.
func (e *Engine) known(ctx context.Context, key Key, how mode) (Entry, bool) {
	if how.fresh {
		return Entry{}, false
	}
	return e.cache.Get(ctx, key)
}

// once runs work for key, or joins the work that is under way for it, and waits
// until ctx ends. The work outlives its first caller, so that one caller's deadline
// is not another's failure and a retry finds a warm cache. The account of config pays.
func (e *Engine) once(ctx context.Context, config *Config, key Key, how mode, work func(context.Context) (Entry, time.Duration, error)) (Entry, error) {
	for {
		entry, err := e.join(ctx, config, key, how, work)
		if how.spare || !errors.Is(err, errNoSpare) {
			return entry, err
		}
		// It was another's work of low priority, which found no place; there may be one
		// for us.
	}
}

func (e *Engine) join(ctx context.Context, config *Config, key Key, how mode, work func(context.Context) (Entry, time.Duration, error)) (Entry, error) {
	account := config.account()
	flight := e.flights.DoChan(key.String(), func() (any, error) {
		if err := how.acquire(e.limit, account, config.Limits.ImagesInWork); err != nil {
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

// run does the work and keeps its result. A panic below becomes an error: it
// must neither end the process nor admit anything.
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

// errOverloaded is transient: a retry may find room.
var errOverloaded = errors.New("too many images are being verified, try again")

// errNoSpare says that what is left is kept for work that somebody waits for.
var errNoSpare = fmt.Errorf("no place is spare: %w", errOverloaded)

// limiter bounds the images that are worked on, in all and per account. An
// account may have no more of them than there are places left for others
// (dynamic thresholds, Choudhury and Hahne 1998): however many accounts flood,
// one that comes anew finds a place. It never waits: work that would have to queue
// is better tried again by the caller, who has a deadline.
type limiter struct {
	mu            sync.Mutex
	total, each   int
	inFlight      int
	inFlightEvery map[Account]int
}

func newLimiter(total, each int) *limiter {
	return &limiter{total: total, each: each, inFlightEvery: map[Account]int{}}
}

// acquire takes a place for an account that may have so many; 0 is as many as
// every account.
func (l *limiter) acquire(account Account, each int) error {
	each = cmp.Or(max(each, 0), l.each)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight >= l.total {
		return errOverloaded
	}
	if have := l.inFlightEvery[account]; have >= each || (have > 0 && have >= l.total-l.inFlight) {
		return fmt.Errorf("%s: %w", account, errOverloaded)
	}
	l.take(account)
	return nil
}

// acquireSpare is acquire for work that nobody waits for: it takes a place only
// while less than half of all are taken, and less than half of the account's own.
func (l *limiter) acquireSpare(account Account, each int) error {
	each = cmp.Or(max(each, 0), l.each)
	l.mu.Lock()
	defer l.mu.Unlock()
	if 2*l.inFlight >= l.total || 2*l.inFlightEvery[account] >= each {
		return fmt.Errorf("%s: %w", account, errNoSpare)
	}
	l.take(account)
	return nil
}

func (l *limiter) take(account Account) {
	l.inFlight++
	l.inFlightEvery[account]++
}

func (l *limiter) release(account Account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	if l.inFlightEvery[account]--; l.inFlightEvery[account] == 0 {
		delete(l.inFlightEvery, account)
	}
}
