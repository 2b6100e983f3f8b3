package cache

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatch is how many values are asked for in one round trip, and readers how
	// many round trips are under way at a time.
	maxBatch = 64
	readers  = 4
)

// read is one value that somebody waits for.
type read struct {
	name   string
	answer chan readAnswer // has room for one
}

type readAnswer struct {
	value string
	err   error
}

// ask returns a value, empty if there is none. Those that are asked for at the
// same time, as the images of one request are, travel together.
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

// readBatches serves reads until ctx ends.
func (r *Redis) readBatches(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-r.reads:
			r.readBatch(ctx, r.gather(first))
		}
	}
}

// gather takes what else is asked for at this moment, and waits for nothing.
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

// readBatch asks each server for the values that it has, all servers at once: one
// that is gone must not cost the values of others.
func (r *Redis) readBatch(ctx context.Context, batch []read) {
	ctx, cancel := context.WithTimeout(ctx, redisBudget)
	defer cancel()
	parts := map[*breaker][]read{}
	for _, wanted := range batch {
		server, err := r.breakers.find(ctx, wanted.name)
		if err != nil {
			wanted.answer <- readAnswer{err: err}
			continue
		}
		parts[server] = append(parts[server], wanted)
	}
	if len(parts) == 1 {
		for server, part := range parts {
			r.readPart(ctx, server, part)
		}
		return
	}
	var running sync.WaitGroup
	for server, part := range parts {
		running.Go(func() { r.readPart(ctx, server, part) })
	}
	running.Wait()
}

// readPart asks one server for values in one round trip. A range of each, because
// the length of a value is for whoever wrote it to say.
func (r *Redis) readPart(ctx context.Context, server *breaker, part []read) {
	values := make([]*redis.StringCmd, len(part))
	_, err := server.Execute(func() (string, error) {
		r.Stats.RoundTrips.Add(1)
		_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, wanted := range part {
				values[i] = pipe.GetRange(ctx, wanted.name, 0, maxValueBytes)
			}
			return nil
		})
		return "", err
	})
	for i, wanted := range part {
		got := readAnswer{err: err}
		// What the breaker refuses was never asked; else each value has its own answer.
		if values[i] != nil {
			got.value, got.err = values[i].Result()
		}
		wanted.answer <- got
	}
}
