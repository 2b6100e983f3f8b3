// Package prefetch fetches values in the background, so that readers never wait for a
// network. Owners register the keys that they want; the caller's [Follow] keeps the value of
// each key up to date for as long as an owner wants it. [Poll] makes a Follow from a function
// that fetches once. The package knows no protocol, does not judge values, and limits each
// owner's share.
package prefetch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
)

var (
	// ErrNotWanted is returned for a key that no owner wants, that exceeds its owner's limit, or
	// that was dropped to make room.
	ErrNotWanted = errors.New("the key is not wanted")
	// ErrPending is returned for a key that has no value yet.
	ErrPending = errors.New("the key has no value yet")
	// ErrBusy is returned by [Set.Add] to an owner with too many unanswered keys.
	ErrBusy = errors.New("too many keys have no value yet")
)

// Follow keeps one key up to date until ctx ends: it calls report with every new value. If it
// panics or returns before ctx ends, it is restarted after a pause.
type Follow[K comparable, V any] func(ctx context.Context, key K, report func(V))

// FirstInTurn returns a Follow that lets total keys, and each of one owner, wait for their first value at a
// time. The others start later.
func FirstInTurn[O, K comparable, V any](follow Follow[K, V], total, each int, owner func(K) O) Follow[K, V] {
	turns := fair.RoundRobin[O](fair.Limits{Total: total, Each: each, Queue: fair.Unbounded})
	return func(ctx context.Context, key K, report func(V)) {
		turn, err := turns.Take(ctx, owner(key))
		if err != nil {
			return // nobody wants the key any more
		}
		leave := sync.OnceFunc(turn.Leave)
		defer leave()
		follow(ctx, key, func(value V) { report(value); leave() })
	}
}

// Options configure a [Set]. The zero value is usable: its defaults are limits, not the
// absence of limits, except where a field says otherwise. The functions are called under a
// lock: they must be pure and must not panic.
type Options[V any] struct {
	// MaxKeys is the number of keys of one owner (64).
	MaxKeys int
	// MaxPending is the number of keys of one owner without an answer at which [Set.Add] refuses
	// another (MaxKeys).
	MaxPending int
	// FirstWait is how long [Set.Want] asks its caller to wait for the first answer
	// of a key (2 seconds).
	FirstWait time.Duration
	// Idle is how long a key is kept after the last [Set.Want] or [Set.Add]; 0 keeps it until it
	// is dropped.
	Idle time.Duration

	// Answers reports whether a value ends the wait for a first answer; nil means
	// that every value does.
	Answers func(value V) bool
	// News reports whether owners are notified of a value, given the last one that they were
	// notified of; nil means always. The first value is always news.
	News func(told, value V) bool

	// Size is the size of a value in bytes. MaxBytes bounds one owner and MaxBytesTotal the Set;
	// beyond them, the least recently wanted keys are dropped: the owner's own, or those of the
	// owner with the most bytes. 0 means no bound. MaxBytes never drops the value that was just
	// reported.
	Size                    func(value V) int
	MaxBytes, MaxBytesTotal int
}

// Set is the wanted set: the keys that each owner wants, and their values. Owners that want
// an equal key share its value, so a K that must not be shared contains its owner. It is safe
// for concurrent use, and only [Set.Await] and [Set.Run] block.
type Set[O, K comparable, V any] struct {
	follow  Follow[K, V]
	now     func() time.Time
	options Options[V]

	mu      sync.Mutex
	changed func(O)
	begin   func(*entry[O, K, V]) // nil unless Run is running
	entries map[K]*entry[O, K, V]
	shares  map[O]*share[O, K, V]
	bytes   int
}

// entry is one key. Set.mu guards all fields but key and answered.
type entry[O, K comparable, V any] struct {
	key      K
	answered chan struct{} // closed by the first answer, or when the key is dropped

	owners   map[O]bool
	since    time.Time // when it was first wanted
	used     time.Time // when it was last wanted
	stop     context.CancelFunc
	reported bool
	value    V
	told     V
	err      error // of a Follow that panicked; the next report clears it
	size     int
}

// share holds the keys of one owner.
type share[O, K comparable, V any] struct {
	keys  map[K]*entry[O, K, V]
	bytes int
}

// New returns a Set whose keys are followed while [Set.Run] runs. now returns the time;
// timers use the real clock.
func New[O, K comparable, V any](follow Follow[K, V], now func() time.Time, options Options[V]) *Set[O, K, V] {
	options.MaxKeys = cmp.Or(options.MaxKeys, defaultMaxKeys)
	options.MaxPending = cmp.Or(options.MaxPending, options.MaxKeys)
	options.FirstWait = cmp.Or(options.FirstWait, defaultFirstWait)
	if options.Size == nil {
		options.Size = func(V) int { return 0 }
	}
	return &Set[O, K, V]{follow: follow, now: now, options: options, changed: func(O) {},
		entries: map[K]*entry[O, K, V]{}, shares: map[O]*share[O, K, V]{}}
}

// Notify sets the function that is called, without a lock, for each owner of a key with a new
// value. It is called on the goroutine of the Follow.
func (s *Set[O, K, V]) Notify(changed func(owner O)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

// Want replaces the keys of an owner. It ignores keys beyond MaxKeys: they return
// [ErrNotWanted]. It returns how long to wait for keys without a first answer: 0 if all have
// one, or FirstWait has passed since they were first wanted.
func (s *Set[O, K, V]) Want(owner O, keys []K) (pending time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[K]bool, min(len(keys), s.options.MaxKeys))
	for _, key := range keys {
		if len(wanted) == s.options.MaxKeys {
			break
		}
		wanted[key] = true
	}
	if own := s.shares[owner]; own != nil {
		for key, e := range maps.Clone(own.keys) {
			if !wanted[key] {
				s.detach(owner, e)
			}
		}
	}
	for key := range wanted {
		if e := s.attach(owner, key); !e.isAnswered() {
			pending = max(pending, e.since.Add(s.options.FirstWait).Sub(s.now()))
		}
	}
	return pending
}

// Add adds one key to an owner, or marks the key as used. An owner with MaxKeys loses the
// least recently used key; one with MaxPending keys without an answer gets [ErrBusy].
func (s *Set[O, K, V]) Add(owner O, key K) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.shares[owner]; own != nil && own.keys[key] == nil {
		if own.pending() >= s.options.MaxPending {
			return ErrBusy
		}
		for len(own.keys) >= s.options.MaxKeys {
			s.detach(owner, own.oldest(nil))
		}
	}
	s.attach(owner, key)
	return nil
}

// KeepOnly drops the keys of all owners that are not in wanted.
func (s *Set[O, K, V]) KeepOnly(wanted map[O][]K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, own := range maps.Clone(s.shares) {
		if _, still := wanted[owner]; still {
			continue
		}
		for _, e := range maps.Clone(own.keys) {
			s.detach(owner, e)
		}
	}
}

// Drop drops the matching keys of all owners.
func (s *Set[O, K, V]) Drop(match func(key K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range maps.Clone(s.entries) {
		if match(key) {
			for owner := range maps.Clone(e.owners) {
				s.detach(owner, e)
			}
		}
	}
}

// Known returns the last value of a key. The error is [ErrNotWanted], [ErrPending], or says
// that the Follow of the key panicked after that value.
func (s *Set[O, K, V]) Known(key K) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	switch {
	case !ok:
		var none V
		return none, ErrNotWanted
	case e.err != nil:
		return e.value, e.err
	case !e.reported:
		return e.value, ErrPending
	}
	return e.value, nil
}

// Keys returns the wanted keys, in no order.
func (s *Set[O, K, V]) Keys() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.entries))
}

// Await blocks until all of keys have a first answer or are not wanted, or ctx ends. There
// are no answers unless [Set.Run] runs.
func (s *Set[O, K, V]) Await(ctx context.Context, keys ...K) {
	s.mu.Lock()
	waiting := make([]chan struct{}, 0, len(keys))
	for _, key := range keys {
		if e := s.entries[key]; e != nil {
			waiting = append(waiting, e.answered)
		}
	}
	s.mu.Unlock()
	for _, answered := range waiting {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

// Run follows all keys, and those wanted later, until ctx ends, and returns once
// every Follow has returned. It may be called once.
func (s *Set[O, K, V]) Run(ctx context.Context) {
	var running sync.WaitGroup
	s.mu.Lock()
	s.begin = func(e *entry[O, K, V]) {
		ctx, stop := context.WithCancel(ctx)
		e.stop = stop
		running.Go(func() {
			defer stop()
			s.supervise(ctx, e)
		})
	}
	for _, e := range s.entries {
		s.begin(e)
	}
	s.mu.Unlock()
	s.sweepUntil(ctx)
	s.mu.Lock()
	s.begin = nil
	s.mu.Unlock()
	running.Wait()
}

// supervise runs the Follow of a key until ctx ends. It survives panics of third-party
// libraries that read from third-party servers.
func (s *Set[O, K, V]) supervise(ctx context.Context, e *entry[O, K, V]) {
	for restarts := 0; ; restarts++ {
		began := s.now()
		err := s.followOnce(ctx, e)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fail(e, err)
		}
		if s.now().Sub(began) > lastRestart {
			restarts = 0
		}
		if !sleep(ctx, doubled(firstRestart, lastRestart, restarts)) {
			return
		}
	}
}

func (s *Set[O, K, V]) followOnce(ctx context.Context, e *entry[O, K, V]) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = internal(r)
		}
	}()
	s.follow(ctx, e.key, func(value V) { s.report(e, value) })
	return nil
}

// report stores a value and notifies the owners if it is news.
func (s *Set[O, K, V]) report(e *entry[O, K, V], value V) {
	s.mu.Lock()
	if s.entries[e.key] != e {
		s.mu.Unlock()
		return // dropped
	}
	news := !e.reported || e.err != nil || s.options.News == nil || s.options.News(e.told, value)
	e.value, e.reported, e.err = value, true, nil
	if news {
		e.told = value
	}
	if s.options.Answers == nil || s.options.Answers(value) {
		e.answer()
	}
	s.resize(e, s.options.Size(value))
	s.unlockAndNotify(e, news)
}

// fail stores the error of a Follow that panicked. It counts as an answer: waiting longer
// would not help.
func (s *Set[O, K, V]) fail(e *entry[O, K, V], err error) {
	s.mu.Lock()
	news := e.err == nil
	e.err = err
	e.answer()
	s.unlockAndNotify(e, news)
}

func (s *Set[O, K, V]) unlockAndNotify(e *entry[O, K, V], news bool) {
	changed := s.changed
	var owners []O
	if news {
		owners = slices.Collect(maps.Keys(e.owners))
	}
	s.mu.Unlock()
	for _, owner := range owners {
		changed(owner)
	}
}
