package page

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// fact is one value that is read on demand, by one reading at a time.
type fact[T any] struct {
	read func(context.Context) (T, error)
	age  time.Duration
	now  func() time.Time
	slot chan struct{}   // bounds the readings of all facts
	base context.Context //nolint:containedctx // a reading outlives the request that began it

	mu      sync.Mutex
	known   bool
	value   T
	err     error
	at      time.Time
	took    time.Duration // the last reading
	running chan struct{} // closed at the end of a reading, nil without one
}

// reading is the last known value of a fact.
type reading[T any] struct {
	Value T
	Known bool  // it was read once
	Err   error // of the last reading; Value is then older
	At    time.Time
}

// get returns the fact. If it is old, get reads it again in the background. It only waits for a
// fact that was never read, for at most patience.
func (f *fact[T]) get(ctx context.Context, patience time.Duration) reading[T] {
	f.mu.Lock()
	fresh := !f.at.IsZero() && f.now().Sub(f.at) < max(f.age, slowly*f.took)
	if !fresh && f.running == nil {
		f.running = make(chan struct{})
		go f.update(f.running) //nolint:contextcheck // a reading outlives the request that began it
	}
	wait := f.running
	if f.known || fresh {
		wait = nil
	}
	f.mu.Unlock()
	if wait != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-wait:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return reading[T]{Value: f.value, Known: f.known, Err: f.err, At: f.at}
}

// update reads the fact once.
func (f *fact[T]) update(done chan struct{}) {
	ctx, cancel := context.WithTimeout(f.base, readTime)
	defer cancel()
	began := f.now()
	value, err := f.bounded(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = f.now().Sub(began)
	if err == nil {
		f.value, f.known = value, true
	}
	f.err, f.at, f.running = err, f.now(), nil
	close(done)
}

// bounded reads once there is capacity. A panic must not end the page.
func (f *fact[T]) bounded(ctx context.Context) (value T, err error) {
	select {
	case f.slot <- struct{}{}:
		defer func() { <-f.slot }()
	case <-ctx.Done():
		return value, ctx.Err()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return f.read(ctx)
}

// recentFacts caches facts by a name, at most maxKept of them.
type recentFacts[T any] struct {
	make func(name string) *fact[T]

	mu    sync.Mutex
	facts map[string]*fact[T]
	order []string // the least recently used one first
}

// of returns the fact of a name.
func (s *recentFacts[T]) of(name string) *fact[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.facts[name]
	if found == nil {
		found = s.make(name)
		s.facts[name] = found
	}
	for i, other := range s.order {
		if other == name {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	s.order = append(s.order, name)
	if len(s.order) > maxKept {
		delete(s.facts, s.order[0])
		s.order = s.order[1:]
	}
	return found
}
