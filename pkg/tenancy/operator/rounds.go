package operator

import (
	"slices"
	"sync"
	"time"
)

const (
	// After a round, a Tenant pauses for pausePerRound times its duration, and at least minPause:
	// continuous changes of its objects take a fifth of one worker. minPause is no longer than
	// the first pause after a failure, which grows by itself.
	pausePerRound = 4
	minPause      = retryPause
)

// rounds schedules the next round of each Tenant. After a change in a namespace, it covers
// that namespace; after any other change, after a failure, and once in [resync] it covers
// everything. The zero value is ready.
type rounds struct {
	mu sync.Mutex
	of map[string]*round
}

// round is the next round of a Tenant. Its zero value is everything, now.
type round struct {
	everything bool
	namespaces []string
	notBefore  time.Time
	compare    time.Time // when to apply everything without a change
}

// at returns the next round of a Tenant. The caller holds mu.
func (r *rounds) at(tenant string) *round {
	if r.of == nil {
		r.of = map[string]*round{}
	}
	if r.of[tenant] == nil {
		r.of[tenant] = &round{}
	}
	return r.of[tenant]
}

// add requests a round for a namespace of a Tenant, or for everything if it is "".
func (r *rounds) add(tenant, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch next := r.at(tenant); {
	case namespace == "":
		next.everything = true
	case !slices.Contains(next.namespaces, namespace):
		next.namespaces = append(next.namespaces, namespace)
	}
}

// hurry requests everything without a pause: the Tenant itself was changed, which only admins
// do.
func (r *rounds) hurry(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.everything, next.notBefore = true, time.Time{}
}

// take begins a round, and returns its namespaces, none for everything; or how long the
// Tenant has to wait for it.
func (r *rounds) take(tenant string, now time.Time) (only []string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	if wait = next.notBefore.Sub(now); wait > 0 {
		return nil, wait
	}
	if !next.everything && now.Before(next.compare) {
		only = next.namespaces
	}
	next.everything, next.namespaces = false, nil
	return only, 0
}

// done ends a full round, schedules the next full one after a time, and returns how long to
// wait. If sound is false, the next one is also full.
func (r *rounds) done(tenant string, sound bool, again time.Duration, began, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.everything = next.everything || !sound
	next.rest(began, now)
	next.compare = now.Add(again)
	return max(again, next.notBefore.Sub(now))
}

// donePartly ends a round of some namespaces, and returns how long to wait. If sound is
// false, the next one is full.
func (r *rounds) donePartly(tenant string, sound bool, began, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.rest(began, now)
	if !sound {
		next.everything = true
		return next.notBefore.Sub(now)
	}
	return max(next.compare.Sub(now), next.notBefore.Sub(now))
}

func (n *round) rest(began, now time.Time) {
	n.notBefore = now.Add(max(minPause, pausePerRound*now.Sub(began)))
}

// failed ends a failed round. The queue schedules the next one.
func (r *rounds) failed(tenant string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.everything, next.notBefore = true, now.Add(minPause)
}

// forget drops a deleted Tenant.
func (r *rounds) forget(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, tenant)
}
