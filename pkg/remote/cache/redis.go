package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Stats counts outcomes of queries to Redis. All fields may be read at any time.
type Stats struct {
	Hits, Misses, Failures, Skipped, Dropped atomic.Int64
	// Unopened counts values that failed authentication: foreign, moved, changed, or sealed with
	// a key that is no longer configured.
	Unopened atomic.Int64
	// RoundTrips counts round trips of reads; several reads may share one.
	RoundTrips atomic.Int64
}

// Redis stores verdicts and evidence that replicas share, for [Chain]. It costs a request little time
// at most, and its failures fail no request: after some of them a server gets no commands for a while.
type Redis struct {
	Stats Stats

	// Changed, if set before Run, is called when Redis is no longer queried, with the last error, and with nil when
	// it answers again. doing is "reads" or "writes", with an address in a cluster. It must not block.
	Changed func(doing string, err error)
	// PassTTL and DenyTTL, if set before Run, bound how long another replica's verdict is used: its clock may be ahead.
	PassTTL, DenyTTL time.Duration

	current atomic.Pointer[server]
	seal    *Seal
	version string
	now     func() time.Time
	reads   chan read
	writes  chan write
	forgets chan forgotten
	// asking bounds the round trips that outlast their requests.
	asking chan struct{}
}

// server is the Redis in use.
type server struct {
	redis.UniversalClient

	breakers *breakers
}

type write struct {
	key   verify.Key
	entry verify.Entry
	ttl   time.Duration
}

// NewRedis returns a cache in the Redis of client. It reads and writes while Run runs. Values
// of another version are a miss, because a later version may decide differently.
func NewRedis(client redis.UniversalClient, seal *Seal, version string, now func() time.Time) *Redis {
	r := &Redis{seal: seal, version: version, now: now, reads: make(chan read, maxPending), writes: make(chan write, maxPending),
		forgets: make(chan forgotten, maxPending), asking: make(chan struct{}, maxAsking)}
	r.current.Store(r.serve(client, nil))
	return r
}

// serve returns a server. failing is the operation that failed on its predecessor.
func (r *Redis) serve(client redis.UniversalClient, failing []string) *server {
	s := &server{UniversalClient: client}
	s.breakers = newBreakers(client, failing, func(doing string, err error) {
		if r.Changed == nil || r.current.Load() != s {
			return
		}
		if err != nil {
			err = errors.New(shown(err))
		}
		r.Changed(doing, err)
	})
	return s
}

// Use replaces the client, for example because its password was changed, and closes the previous one. Commands in
// flight there fail, which costs a miss.
func (r *Redis) Use(ctx context.Context, client redis.UniversalClient) {
	was := r.current.Load()
	next := r.serve(client, was.breakers.failed())
	if next.breakers.cluster != nil {
		next.breakers.cluster.ReloadState(ctx)
	}
	r.current.Store(next)
	_ = was.Close() // changes of an unused server are not reported
}

// Run reads and writes until ctx ends, then closes the client and returns its error.
func (r *Redis) Run(ctx context.Context) error {
	if cluster := r.current.Load().breakers.cluster; cluster != nil {
		cluster.ReloadState(ctx) // returns immediately, so that no request waits for it
	}
	var running sync.WaitGroup
	for range writers {
		running.Go(func() { each(ctx, r.writes, r.store) })
	}
	for range readers {
		running.Go(func() {
			each(ctx, r.reads, func(ctx context.Context, first read) { r.readBatch(ctx, r.gather(first)) })
		})
	}
	running.Go(func() { each(ctx, r.forgets, r.remove) })
	running.Wait()
	if err := r.current.Load().Close(); err != nil {
		return fmt.Errorf("close the connection to Redis: %w", err)
	}
	return nil
}

// each calls do for each item, one after the other, until ctx ends.
func each[T any](ctx context.Context, from <-chan T, do func(context.Context, T)) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-from:
			do(ctx, one)
		}
	}
}

// name returns the key in Redis: "landwaiter:<namespace>:<kind>:<hash>".
func (r *Redis) name(key verify.Key) string {
	key.Generation = r.version + "/" + key.Generation
	return key.String()
}

// get returns an entry and its expiry.
func (r *Redis) get(ctx context.Context, key verify.Key) (verify.Entry, time.Time, bool) {
	ctx, cancel := context.WithTimeout(ctx, redisBudget)
	defer cancel()
	name := r.name(key)
	value, err := r.ask(ctx, name)
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		r.Stats.Skipped.Add(1)
		return verify.Entry{}, time.Time{}, false
	case err != nil:
		r.Stats.Failures.Add(1)
		return verify.Entry{}, time.Time{}, false
	case value == "":
		r.Stats.Misses.Add(1)
		return verify.Entry{}, time.Time{}, false
	}
	_, entry, expires, err := open(r.seal, scopeOf(key), name, []byte(value))
	switch {
	case err != nil && !errors.Is(err, errOtherVersion):
		r.Stats.Unopened.Add(1)
		return verify.Entry{}, time.Time{}, false
	case err != nil, !r.now().Before(expires):
		r.Stats.Misses.Add(1)
		return verify.Entry{}, time.Time{}, false
	}
	r.Stats.Hits.Add(1)
	if latest := r.now().Add(r.longest(entry)); expires.After(latest) {
		return entry, latest, true
	}
	return entry, expires, true
}

// longest returns how long an entry may be used from now on.
func (r *Redis) longest(entry verify.Entry) time.Duration {
	switch {
	case entry.Evidence != nil:
		return evidenceLifetime
	case entry.Verdict.Outcome() == policy.Allowed:
		return cmp.Or(r.PassTTL, verify.DefaultPassTTL)
	}
	return cmp.Or(r.DenyTTL, verify.DefaultDenyTTL)
}

// open opens a value. It returns the value as written, and its entry.
func open(seal *Seal, of scope, name string, value []byte) (wire wireEntry, entry verify.Entry, expires time.Time, err error) {
	if len(value) > maxValueBytes {
		return wire, entry, expires, fmt.Errorf("the value is larger than %d bytes", maxValueBytes)
	}
	plain, expires, err := seal.open(of, name, value)
	if err != nil {
		return wire, entry, expires, err
	}
	if wire, err = decode(plain); err != nil {
		return wire, entry, expires, err
	}
	entry, err = wire.entry()
	return wire, entry, expires, err
}

// scopeOf returns the scope whose keys seal the value of a key.
func scopeOf(key verify.Key) scope { return scope{namespace: key.Namespace, uid: key.UID} }

// put queues an entry to be written, or drops it.
func (r *Redis) put(key verify.Key, entry verify.Entry, ttl time.Duration) {
	if entry.Evidence != nil {
		if weighEvidence(entry.Evidence) > maxEvidenceBytes {
			return // it stays in memory alone
		}
		ttl = min(ttl, evidenceLifetime)
	}
	if ttl < time.Millisecond {
		return // Redis counts in milliseconds
	}
	select {
	case r.writes <- write{key, entry, ttl}:
	default:
		r.Stats.Dropped.Add(1)
	}
}

func (r *Redis) store(ctx context.Context, w write) {
	name := r.name(w.key)
	now := r.now()
	plain, err := encode(w.entry, origin{Image: w.key.Image, Generation: w.key.Generation, Program: r.version, Written: now.UnixMilli()})
	if err == nil && len(plain) > maxValueBytes/2 {
		err = errors.New("the verdict is too large")
	}
	var value []byte
	if err == nil {
		value, err = r.seal.close(scopeOf(w.key), name, plain, now.Add(w.ttl))
	}
	if err != nil {
		r.Stats.Dropped.Add(1)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeBudget)
	defer cancel()
	server := r.current.Load()
	breaker, err := server.breakers.find(ctx, name, writing)
	if err == nil {
		_, err = breaker.Execute(func() (string, error) { return server.Set(ctx, name, value, w.ttl).Result() })
	}
	if err != nil {
		r.Stats.Dropped.Add(1)
	}
}

// Forget removes the keys of a namespace asynchronously, if Redis allows it. Remaining keys cannot be
// found under another UID, and expire. This includes keys of a namespace that this replica has not read
// or written: another cluster may have a namespace of that name in the same Redis.
func (r *Redis) Forget(namespace verify.Namespace) {
	uids := r.seal.uids(namespace)
	if namespace == verify.Cluster || len(uids) == 0 {
		return
	}
	select {
	case r.forgets <- forgotten{namespace, uids}:
	default:
		r.Stats.Dropped.Add(1)
	}
}

// forgotten is a deleted namespace with its UIDs.
type forgotten struct {
	namespace verify.Namespace
	uids      []string
}

func (r *Redis) remove(ctx context.Context, of forgotten) {
	ctx, cancel := context.WithTimeout(ctx, forgetBudget)
	defer cancel()
	if err := purge(ctx, r.current.Load().UniversalClient, of); err != nil {
		r.Stats.Failures.Add(1)
	}
}
