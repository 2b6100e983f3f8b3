package operator

import (
	"slices"
	"sync"
	"time"
)

const (
	// A Tenant waits between two rounds for pausePerRound times as long as the last one took, and
	// for minPause at least: whoever changes its objects in a loop takes a fifth of one worker.
	// minPause is no longer than the first pause after a failure, which grows by itself.
	pausePerRound = 4
	minPause      = retryPause
)

// rounds says what of each Tenant is applied next, and when. After a change in a namespace
// that is what the namespace has; after any other one, after a failure, and once in [resync]
// it is everything. The zero value is ready.
type rounds struct {
	mu sync.Mutex
	of map[string]*round
}

// round is the next one of a Tenant. Its zero value is everything, now.
type round struct {
	everything bool
	namespaces []string
	notBefore  time.Time
	compare    time.Time // when everything is applied without a reason
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

// add asks for what a namespace of a Tenant has, or for everything if it is "".
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

// hurry asks for everything without a pause: the Tenant itself was changed, which only admins
// do.
func (r *rounds) hurry(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.everything, next.notBefore = true, time.Time{}
}

// take begins a round, and returns the namespaces that it is for, none for everything; or how
// long the Tenant has to wait for it.
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

// done ends a round of everything that is to be compared again after a time, and returns how
// long to wait. If it is not sound, the next one is of everything, whatever it is asked for.
func (r *rounds) done(tenant string, sound bool, again time.Duration, began, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.everything = next.everything || !sound
	next.rest(began, now)
	next.compare = now.Add(again)
	return max(again, next.notBefore.Sub(now))
}

// donePartly ends a round of some namespaces, and returns how long to wait. If it is not
// sound, everything is next.
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

// failed ends a round about which nothing is known. The queue says when the next one is.
func (r *rounds) failed(tenant string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.at(tenant)
	next.everything, next.notBefore = true, now.Add(minPause)
}

// forget drops a Tenant that is gone.
func (r *rounds) forget(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, tenant)
}
