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

// Redis holds verdicts and evidence that replicas share, for [Tiers]. It costs a request little time at
// most, and its failures fail no request: after some of them a server gets no commands for
// a while. It stores verdicts and evidence.
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
		running.Go(func() { each(ctx, r.writes, r.store) })
	}
	for range readers {
		running.Go(func() {
			each(ctx, r.reads, func(ctx context.Context, first read) { r.readBatch(ctx, r.gather(first)) })
		})
	}
	running.Go(func() { each(ctx, r.forgets, r.remove) })
	running.Wait()
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("close the connection to Redis: %w", err)
	}
	return nil
}

// each calls do with what comes, one after the other, until ctx ends.
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
	return entry, expires, true
}

// open opens a value, and returns it as it was written and the entry that it is.
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

// scopeOf returns whose keys seal the value of a key.
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

func (r *Redis) remove(ctx context.Context, namespace verify.Namespace) {
	if namespace == verify.Cluster {
		return // the cluster is never deleted
	}
	ctx, cancel := context.WithTimeout(ctx, forgetBudget)
	defer cancel()
	if _, err := Purge(ctx, r.client, namespace); err != nil {
		r.Stats.Failures.Add(1)
	}
}

// breaker is the circuit breaker of one server.
type breaker = gobreaker.CircuitBreaker[string]

// breakers holds one circuit breaker per cluster master, so that a failing master does not
// trip the others. Without a cluster there is a single breaker.
type breakers struct {
	// common is the breaker of a Redis without cluster, and otherwise that of finding the
	// master of a key.
	common  *breaker
	cluster *redis.ClusterClient // nil without a cluster

	mu sync.Mutex
	of map[string]*breaker // by address
}

func newBreakers(client redis.UniversalClient) *breakers {
	b := &breakers{of: map[string]*breaker{}}
	b.cluster, _ = client.(*redis.ClusterClient)
	b.common = b.newBreaker("redis")
	return b
}

// newBreaker returns a closed breaker.
//
//nolint:contextcheck,nolintlint // finding who took over outlives the read that noticed; the first reads this, the second does not see that
func (b *breakers) newBreaker(name string) *breaker {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: name, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen && b.cluster != nil {
				// Another server may have taken over its slots. The client would look once a
				// minute; this returns at once.
				b.cluster.ReloadState(context.Background())
			}
		},
	})
}

// find returns the breaker of the master that has a key.
func (b *breakers) find(ctx context.Context, key string) (*breaker, error) {
	if b.cluster == nil {
		return b.common, nil
	}
	address, err := b.common.Execute(func() (string, error) {
		master, err := b.cluster.MasterForKey(ctx, key)
		if err != nil {
			return "", fmt.Errorf("find the master of a key: %w", err)
		}
		return master.Options().Addr, nil
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.of[address]
	if !ok {
		if len(b.of) >= maxBreakers {
			clear(b.of) // they start over with no failures
		}
		found = b.newBreaker(address)
		b.of[address] = found
	}
	return found, nil
}

// read is one value that a request waits for.
type read struct {
	name   string
	answer chan readAnswer // has room for one
}

type readAnswer struct {
	value string
	err   error
}

// ask returns a value, empty if there is none. Concurrent reads, such as those for the
// images of one request, share a round trip.
func (r *Redis) ask(ctx context.Context, name string) (string, error) {
	asked := read{name: name, answer: make(chan readAnswer, 1)}
	select {
	case r.reads <- asked:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	select {
	case got := <-asked.answer:
		return got.value, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// gather adds the reads that are waiting already. It never waits.
func (r *Redis) gather(first read) []read {
	batch := []read{first}
	for len(batch) < maxBatch {
		select {
		case next := <-r.reads:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// readBatch asks every server for its values in parallel: a server that is down must not
// cost the values of others.
func (r *Redis) readBatch(ctx context.Context, batch []read) {
	ctx, cancel := context.WithTimeout(ctx, redisBudget)
	defer cancel()
	byServer := map[*breaker][]read{}
	for _, wanted := range batch {
		server, err := r.breakers.find(ctx, wanted.name)
		if err != nil {
			wanted.answer <- readAnswer{err: err}
			continue
		}
		byServer[server] = append(byServer[server], wanted)
	}
	if len(byServer) == 1 {
		for server, reads := range byServer {
			r.readFrom(ctx, server, reads)
		}
		return
	}
	var running sync.WaitGroup
	for server, reads := range byServer {
		running.Go(func() { r.readFrom(ctx, server, reads) })
	}
	running.Wait()
}

// readFrom asks one server for values in one round trip. It reads a range of each, because
// whoever wrote a value chose its length.
func (r *Redis) readFrom(ctx context.Context, server *breaker, reads []read) {
	values := make([]*redis.StringCmd, len(reads))
	_, err := server.Execute(func() (string, error) {
		r.Stats.RoundTrips.Add(1)
		_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, wanted := range reads {
				values[i] = pipe.GetRange(ctx, wanted.name, 0, maxValueBytes)
			}
			return nil
		})
		return "", err
	})
	for i, wanted := range reads {
		got := readAnswer{err: err}
		// An open breaker asked for nothing; otherwise each value has its own answer.
		if values[i] != nil {
			got.value, got.err = values[i].Result()
		}
		wanted.answer <- got
	}
}
