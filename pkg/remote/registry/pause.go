package registry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// sharedKey identifies a limit of a registry that all accounts share. Registries limit each login,
// and anonymous clients by their address. So a refusal for one ClusterStore's login does not apply
// to another login, or to anonymous requests.
type sharedKey struct {
	host  string
	login policy.ObjectRef // the ClusterStore of the login, zero for anonymous requests
	user  string           // which of the ClusterStore's logins
}

// shared paces the requests of all accounts under one limit of a registry. A refusal with
// Retry-After pauses all of them and halves their common rate, which recovers slowly. Accounts take
// turns at that rate.
//
// An account can provoke refusals, such as by a repository that proxies to its own server. So a pause
// only binds others if the account has bound nobody for nine times as long and until the rate had
// recovered, and if nobody has for as long as the last pause. Otherwise it only binds the account. One
// account can thus delay the others for at most a tenth of the time, and any number of accounts for
// half of it.
type shared struct {
	line *fair.Turns[verify.Account] // one account at a time
	full float64

	mu       sync.Mutex
	until    time.Time // end of the pause of all accounts
	quiet    time.Time // until then, no account pauses the others
	rate     float64   // requests per second at the end of the pause, 0 for no limit
	next     time.Time // when the rate admits the next request
	accounts map[verify.Account]refusals
}

// refusals is the state of one account's refusals.
type refusals struct {
	until time.Time // end of its own pause
	quiet time.Time // until then, it pauses nobody else
}

// newShared returns a shared without a pause. perSecond is the rate to which it recovers.
func newShared(perSecond int) *shared {
	return &shared{line: fair.RoundRobin[verify.Account](fair.Limits{Total: 1, Each: 1, Queue: maxQueue}), full: float64(perSecond),
		accounts: map[verify.Account]refusals{}}
}

// shared returns the shared limits of a request, or nil for a request that only counts for its own
// account: one to a host that no cluster admin named, or with a login of a namespace. The caller
// leaves it.
func (g *guard) shared(host string) (_ *shared, leave func()) {
	client, store := g.session.client, g.store
	if named := g.session.access.named(host) || g.named && host == g.origin; !named {
		return nil, func() {}
	}
	key := sharedKey{host: host}
	login := g.trusted(host) && g.credential != (Credential{})
	if login || g.presents(host) && store.ClientCertificate != nil {
		if store.Source.Namespace != "" {
			return nil, func() {}
		}
		key.login, key.user = store.Source, g.credential.Username
	}
	return client.shared.take(key, func() *shared { return newShared(client.options.PerSecond) })
}

// enter waits until the pauses have ended and it is the account's turn. It returns errBackOff
// immediately if ctx ends before a pause does. A nil s never waits.
func (s *shared) enter(ctx context.Context, account verify.Account) error {
	for s != nil {
		if err := s.waitOut(ctx, account); err != nil {
			return err
		}
		if !s.limited() {
			return nil
		}
		turn, err := s.line.Take(ctx, account)
		if err != nil {
			return fmt.Errorf("wait for the rate of the host: %w", err)
		}
		passed, err := s.pass(ctx, account)
		turn.Leave()
		if passed || err != nil {
			return err
		}
	}
	return nil
}

// waitOut waits until no pause binds the account.
func (s *shared) waitOut(ctx context.Context, account verify.Account) error {
	for {
		until := s.paused(account)
		if until.IsZero() {
			return nil
		}
		if err := sleepBefore(ctx, until); err != nil {
			return err
		}
	}
}

// paused returns the end of the pause that binds the account, zero without one. No pause binds
// the requests of a nil s.
func (s *shared) paused(account verify.Account) time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.until
	if own := s.accounts[account].until; own.After(until) {
		until = own
	}
	if !time.Now().Before(until) {
		return time.Time{}
	}
	return until
}

// limited reports whether there is a rate. It forgets a recovered one.
func (s *shared) limited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current(time.Now()) >= s.full {
		s.rate = 0
	}
	return s.rate > 0
}

// current returns the rate at a time after the pause.
func (s *shared) current(now time.Time) float64 {
	if s.rate == 0 {
		return s.full
	}
	return min(s.full, s.rate+recoveryPerSecond*max(now.Sub(s.until), 0).Seconds())
}

// pass waits until the rate admits a request. If a pause of all accounts begins meanwhile, the order
// of turns stays. It reports false if the account's own pause began.
func (s *shared) pass(ctx context.Context, account verify.Account) (bool, error) {
	for {
		now := time.Now()
		s.mu.Lock()
		own, until, next := s.accounts[account].until, s.until, s.next
		if now.Before(own) || !now.Before(until) && !now.Before(next) {
			defer s.mu.Unlock()
			if now.Before(own) {
				return false, nil
			}
			if next.Before(now.Add(-maxLate)) {
				next = now.Add(-maxLate)
			}
			s.next = next.Add(time.Duration(float64(time.Second) / s.current(now)))
			return true, nil
		}
		s.mu.Unlock()
		if err := sleepBefore(ctx, until); err != nil {
			return false, err
		}
		if err := sleepUntil(ctx, next); err != nil {
			return false, fmt.Errorf("wait for the rate of the host: %w", err)
		}
	}
}

// refuse records that a request of the account was refused, with a pause.
func (s *shared) refuse(account verify.Account, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	wait = max(min(wait, maxBackOff), time.Second) // dates are whole seconds, so a shorter pause is part of one
	for other, of := range s.accounts {
		if now.After(of.until) && now.After(of.quiet) {
			delete(s.accounts, other)
		}
	}
	of := s.accounts[account]
	if own := now.Add(wait + othersFirst); own.After(of.until) {
		of.until = own
	}
	if !now.Before(of.quiet) && !now.Before(s.quiet) {
		s.rate = max(s.current(now)/2, minRate)
		s.until, s.quiet = now.Add(wait), now.Add(2*wait)
		recovered := s.until.Add(time.Duration((s.full - s.rate) / recoveryPerSecond * float64(time.Second)))
		if of.quiet = now.Add(10 * wait); recovered.After(of.quiet) {
			of.quiet = recovered
		}
	}
	s.accounts[account] = of
}

// sleepBefore waits until the end of a pause. It returns errBackOff immediately if ctx ends
// earlier.
func sleepBefore(ctx context.Context, end time.Time) error {
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) && time.Now().Before(end) {
		return errBackOff
	}
	if err := sleepUntil(ctx, end); err != nil {
		return fmt.Errorf("%w: %w", errBackOff, err)
	}
	return nil
}

// sleepUntil waits until a time, or until ctx ends, and then returns its error.
func sleepUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
