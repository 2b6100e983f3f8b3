package cache

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

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
