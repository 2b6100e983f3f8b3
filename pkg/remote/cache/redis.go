package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Stats counts outcomes of asking Redis. All fields may be read at any time.
type Stats struct {
	Hits, Misses, Failures, Skipped, Dropped atomic.Int64
	// Unopened are values that failed authentication: foreign, moved, changed, or sealed
	// with a key that is no longer configured.
	Unopened atomic.Int64
	// RoundTrips are those of reads; several reads may share one.
	RoundTrips atomic.Int64
}

// Redis holds verdicts that replicas share, for [Tiers]. It costs a request little time at
// most, and its failures fail no request: after some of them a server gets no commands for
// a while. It stores verdicts only.
type Redis struct {
	Stats Stats

	client   redis.UniversalClient
	seal     *Seal
	version  string
	now      func() time.Time
	breakers *breakers
	reads    chan read
	writes   chan write
	forgets  chan verify.Namespace
}

type write struct {
	key   verify.Key
	entry verify.Entry
	ttl   time.Duration
}

// NewRedis returns a cache in the Redis of client. It reads and writes while Run runs.
// Values of another version are a miss, because a later version may decide otherwise.
func NewRedis(client redis.UniversalClient, seal *Seal, version string, now func() time.Time) *Redis {
	return &Redis{client: client, seal: seal, version: version, now: now, breakers: newBreakers(client),
		reads: make(chan read, maxPending), writes: make(chan write, maxPending), forgets: make(chan verify.Namespace, maxPending)}
}

// Run reads and writes until ctx ends, then closes the client and returns its error.
func (r *Redis) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for range writers {
		running.Go(func() { r.write(ctx) })
	}
	for range readers {
		running.Go(func() { r.readBatches(ctx) })
	}
	running.Go(func() { r.forget(ctx) })
	running.Wait()
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("close the connection to Redis: %w", err)
	}
	return nil
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
	entry, expires, err := r.open(scopeOf(key), name, []byte(value))
	switch {
	case err != nil && !errors.Is(err, errOtherVersion):
		r.Stats.Unopened.Add(1)
		return verify.Entry{}, time.Time{}, false
	case err != nil, !r.now().Before(expires):
		r.Stats.Misses.Add(1)
		return verify.Entry{}, time.Time{}, false
	}
	r.Stats.Hits.Add(1)
	return entry, expires, true
}

// open opens and decodes a value.
func (r *Redis) open(of scope, name string, value []byte) (verify.Entry, time.Time, error) {
	wire, expires, err := openWire(r.seal, of, name, value)
	if err != nil {
		return verify.Entry{}, time.Time{}, err
	}
	entry, err := wire.entry()
	return entry, expires, err
}

// openWire opens a value, and reads it without judging what it says.
func openWire(seal *Seal, of scope, name string, value []byte) (wireEntry, time.Time, error) {
	if len(value) > maxValueBytes {
		return wireEntry{}, time.Time{}, fmt.Errorf("the value is larger than %d bytes", maxValueBytes)
	}
	plain, expires, err := seal.open(of, name, value)
	if err != nil {
		return wireEntry{}, time.Time{}, err
	}
	wire, err := decode(plain)
	return wire, expires, err
}

// scopeOf returns whose keys seal the value of a key.
func scopeOf(key verify.Key) scope { return scope{namespace: key.Namespace, uid: key.UID} }

// put queues an entry to be written, or drops it.
func (r *Redis) put(key verify.Key, entry verify.Entry, ttl time.Duration) {
	if ttl < time.Millisecond {
		return // Redis counts in milliseconds
	}
	select {
	case r.writes <- write{key, entry, ttl}:
	default:
		r.Stats.Dropped.Add(1)
	}
}

func (r *Redis) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-r.writes:
			r.store(ctx, w)
		}
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
	server, err := r.breakers.find(ctx, name)
	if err == nil {
		_, err = server.Execute(func() (string, error) { return r.client.Set(ctx, name, value, w.ttl).Result() })
	}
	if err != nil {
		r.Stats.Dropped.Add(1)
	}
}

// Forget removes the keys of a namespace asynchronously, as far as Redis allows. Those that
// stay cannot be found under another UID, and expire.
func (r *Redis) Forget(namespace verify.Namespace) {
	select {
	case r.forgets <- namespace:
	default:
		r.Stats.Dropped.Add(1)
	}
}

func (r *Redis) forget(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case namespace := <-r.forgets:
			if err := r.remove(ctx, namespace); err != nil {
				r.Stats.Failures.Add(1)
			}
		}
	}
}

func (r *Redis) remove(ctx context.Context, namespace verify.Namespace) error {
	if namespace == verify.Cluster {
		return nil // the cluster is never deleted
	}
	ctx, cancel := context.WithTimeout(ctx, forgetBudget)
	defer cancel()
	_, err := Purge(ctx, r.client, namespace)
	return err
}
