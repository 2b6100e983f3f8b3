package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// signed are requests for one image each that is signed: a denial is kept for
// seconds only.
func (s *stage) signed(namespaces int) ([]request, error) {
	var requests []request
	for i := range namespaces {
		for _, img := range s.own(i) {
			r, err := newRequest(namespace(i), img)
			if err != nil {
				return nil, err
			}
			if img.signed {
				requests = append(requests, r)
			}
		}
	}
	return requests, nil
}

// onlyRedis measures a replica that has just started, beside one that knows all.
func onlyRedis(ctx context.Context, s *stage) ([]figure, error) {
	const namespaces = 100
	requests, err := s.signed(namespaces)
	if err != nil {
		return nil, err
	}
	redis, flags, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	defer redis.Kill()
	first, err := s.shareVerdicts(ctx, redis, namespaces, len(requests)*9/10, flags...)
	if err != nil {
		return nil, err
	}
	defer first.Kill()
	second, err := s.provide(ctx, namespaces, flags...)
	if err != nil {
		return nil, err
	}
	defer second.Kill()
	before := s.registry.Count()
	f := load{client: s.caller(second.url, true), connections: s.connections, check: true, next: func(i int) (request, bool) {
		if i >= len(requests) {
			return request{}, false
		}
		return requests[i], true
	}}.run(ctx, "warm in Redis only")
	f.RegistryRequests = s.registry.Count() - before
	f.Remark = fmt.Sprintf("%d requests to the registry", f.RegistryRequests)
	return []figure{f}, nil
}

// shareVerdicts starts replicas one after another until most verdicts are in Redis, and
// returns the last: a write that takes too long is given up, which on a busy machine is more
// than one in ten.
func (s *stage) shareVerdicts(ctx context.Context, redis *cluster.Redis, namespaces, most int, flags ...string) (*server, error) {
	for replica := 1; ; replica++ {
		p, err := s.provide(ctx, namespaces, flags...)
		if err != nil {
			return nil, err
		}
		if err := s.fill(ctx, p.url, namespaces); err != nil {
			return nil, err
		}
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		err = cluster.Until(wait, func(ctx context.Context) error {
			if n, err := s.kept(ctx, redis); err != nil || n < 2*most { // with the evidence of each
				return errors.Join(err, fmt.Errorf("%d of %d values are in Redis", n, 2*most))
			}
			return nil
		})
		cancel()
		if err == nil || replica == 10 {
			return p, err
		}
		p.Kill()
	}
}

// faultyRedis lets Redis fail while images are asked for that nobody asked for.
func faultyRedis(ctx context.Context, s *stage, name string, fault func(*cluster.Redis) error) ([]figure, error) {
	const namespaces = 100
	redis, flags, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	defer redis.Kill()
	p, err := s.provide(ctx, namespaces, flags...)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	failed := make(chan error, 1)
	go func() {
		select {
		case <-time.After(s.duration / 2):
		case <-ctx.Done():
		}
		failed <- fault(redis)
	}()
	ask, end, left := s.pairs(namespaces, 1<<30), time.Now().Add(s.duration), true
	f := load{client: s.caller(p.url, true), connections: s.connections, check: true, next: func(i int) (r request, ok bool) {
		// On a busy machine the first answers take longer than a short measurement.
		if i >= 2*s.connections && time.Now().After(end) {
			return request{}, false
		}
		r, left = ask(i)
		return r, left
	}}.run(ctx, name)
	if !left {
		return nil, errors.New("there was nothing left to ask for before Redis failed: shorten -duration or raise -images")
	}
	return []figure{f}, <-failed
}

// share starts a Redis and returns the flags to use it.
func (s *stage) share(ctx context.Context) (*cluster.Redis, []string, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, nil, errors.New("redis-server is not installed: test/tools/packages.sh does that")
	}
	redis, err := cluster.StartRedis(ctx, filepath.Join(s.dir, "redis"))
	if err != nil {
		return nil, nil, fmt.Errorf("start Redis: %w", err)
	}
	s.running = append(s.running, redis.Process)
	file, err := writeSealKey(s.dir)
	if err != nil {
		return nil, nil, err
	}
	return redis, []string{"--redis-url", redis.URL, "--redis-key-file", file}, nil
}

// writeSealKey writes a new sealing key into a folder, and returns its file.
func writeSealKey(dir string) (string, error) {
	file := filepath.Join(dir, "redis.key")
	if err := os.WriteFile(file, fixture.NewSealKey(), 0o600); err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	return file, nil
}

// kept counts the keys in Redis.
func (s *stage) kept(ctx context.Context, redis *cluster.Redis) (keys int, err error) {
	client, err := cache.Connect(cache.Connection{URL: redis.URL})
	if err != nil {
		return 0, fmt.Errorf("connect to Redis: %w", err)
	}
	used, err := cache.Usage(ctx, client)
	for _, use := range used {
		keys += use.Keys
	}
	if err := errors.Join(err, client.Close()); err != nil {
		return 0, fmt.Errorf("count what is in Redis: %w", err)
	}
	return keys, nil
}
