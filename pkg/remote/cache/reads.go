package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// read is one value that a request waits for.
type read struct {
	name   string
	until  time.Time
	answer chan readAnswer // buffered, for one value
}

type readAnswer struct {
	value string
	err   error
}

// ask returns a value, empty if there is none. Concurrent reads, such as those for the
// images of one request, share a round trip.
func (r *Redis) ask(ctx context.Context, name string) (string, error) {
	asked := read{name: name, until: time.Now().Add(redisBudget), answer: make(chan readAnswer, 1)}
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

// gather adds the reads that are already waiting. It never waits.
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

// readBatch reads from every server in parallel: a server that is down must not cost the
// values of others.
func (r *Redis) readBatch(ctx context.Context, batch []read) {
	limited, cancel := context.WithTimeout(ctx, redisBudget)
	defer cancel()
	server := r.current.Load()
	byBreaker := map[*breaker][]read{}
	for _, wanted := range batch {
		if time.Now().After(wanted.until) {
			continue // its request no longer waits
		}
		found, err := server.breakers.find(limited, wanted.name, reading)
		if err != nil {
			wanted.answer <- readAnswer{err: err}
			continue
		}
		byBreaker[found] = append(byBreaker[found], wanted)
	}
	var running sync.WaitGroup
	for found, reads := range byBreaker {
		running.Go(func() { r.readFrom(ctx, limited, server, found, reads) })
	}
	running.Wait()
}

// readFrom reads from one server in one round trip, and waits until limited ends. The round trip may take longer: a
// connection that is being opened must be ready for the next request.
func (r *Redis) readFrom(ctx, limited context.Context, server *server, breaker *breaker, reads []read) {
	_, err := breaker.Execute(func() (string, error) {
		select {
		case r.asking <- struct{}{}:
		default:
			return "", errBusy
		}
		r.Stats.RoundTrips.Add(1)
		ended := make(chan error, 1)
		go func() {
			defer func() { <-r.asking }()
			ctx, cancel := context.WithTimeout(ctx, connectBudget)
			defer cancel()
			ended <- server.values(ctx, reads)
		}()
		select {
		case err := <-ended:
			return "", err
		case <-limited.Done():
			return "", errSlow
		}
	})
	if err == nil {
		return
	}
	for _, wanted := range reads { // reads without an answer
		select {
		case wanted.answer <- readAnswer{err: err}:
		default:
		}
	}
}

// errSlow means that a server did not answer within a request's budget.
var errSlow = fmt.Errorf("no answer within %s", redisBudget)

// errBusy means that too many reads are taking too long, perhaps of another server.
var errBusy = errors.New("too many reads of Redis are waiting")

// values answers reads in one round trip. It reads a limited range of each value, because anyone who can
// write to Redis chooses its length. Without an answer to any, it returns the error.
func (s *server) values(ctx context.Context, reads []read) error {
	values := make([]*redis.StringCmd, len(reads))
	_, err := s.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, wanted := range reads {
			values[i] = pipe.GetRange(ctx, wanted.name, 0, maxValueBytes)
		}
		return nil
	})
	// If a login or SELECT is refused, the commands are not sent and have no error.
	if err != nil && !slices.ContainsFunc(values, func(v *redis.StringCmd) bool { return v.Err() != nil }) {
		return err
	}
	for i, wanted := range reads {
		var got readAnswer
		got.value, got.err = values[i].Result()
		select {
		case wanted.answer <- got:
		default: // its request was told that it took too long
		}
	}
	return err
}
