package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const (
	replicaNamespaces = 100
	// askedAgain is how often each image is asked for after the first time, so that every
	// replica is asked for most of them.
	askedAgain = 4
	// coldShare is one cold request in so many while something happens to replicas.
	coldShare = 20
	// shutdownGrace is how long a replica may take to end.
	shutdownGrace = 15 * time.Second
)

// group is several replicas behind a front, with one Redis Cluster.
type group struct {
	*stage
	redis     *cluster.RedisCluster
	resources string
	flags     []string
	front     front
	replicas  []*server
}

// replicas measures what replicas gain from each other, and what a client notices when they and
// Redis come and go.
func replicas(ctx context.Context, s *stage) ([]figure, error) {
	var figures []figure
	for _, n := range []int{1, 2, 4} {
		measured, err := s.grouped(ctx, n, (*group).throughput)
		if err != nil {
			return nil, err
		}
		figures = append(figures, measured...)
	}
	for _, happens := range []func(*group, context.Context) ([]figure, error){(*group).replaced, (*group).loseMaster, (*group).restarted} {
		measured, err := s.grouped(ctx, 2, happens)
		if err != nil {
			return nil, err
		}
		figures = append(figures, measured...)
	}
	return figures, nil
}

// grouped measures a new group of n replicas whose Redis is empty.
func (s *stage) grouped(ctx context.Context, n int, measure func(*group, context.Context) ([]figure, error)) ([]figure, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errors.New("redis-server is not installed: test/tools/packages.sh does that")
	}
	dir, err := os.MkdirTemp(s.dir, "redis-cluster-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	g := &group{stage: s}
	if g.redis, err = cluster.StartRedisCluster(ctx, dir); err != nil {
		return nil, fmt.Errorf("start a Redis Cluster: %w", err)
	}
	defer g.redis.Kill()
	seal, err := writeSealKey(dir)
	if err != nil {
		return nil, err
	}
	// A denial would end within the run, and be worked out again.
	g.flags = []string{"--redis-url", g.redis.URL, "--redis-option", "mode=cluster", "--redis-key-file", seal, "--ttl", "deny=1h", "--timeout", "drain=2s"}
	if g.resources, err = s.configure(replicaNamespaces); err != nil {
		return nil, err
	}
	defer func() {
		for _, p := range g.replicas {
			p.Kill()
		}
	}()
	for range n {
		if err := g.start(ctx); err != nil {
			return nil, err
		}
	}
	return measure(g, ctx)
}

// start adds a replica to the front once it is ready.
func (g *group) start(ctx context.Context) error {
	p, err := g.serve(ctx, g.resources, g.flags...)
	if err != nil {
		return err
	}
	g.replicas = append(g.replicas, p)
	g.front.add(p)
	return nil
}

// ask measures requests to the group. Each may fail once.
func (g *group) ask(ctx context.Context, name string, next func(int) (request, bool)) figure {
	client := g.behind(&g.front)
	defer client.Close()
	before, used := g.registry.Count(), g.used()
	f := load{client: client, connections: g.connections, check: true, retryOnce: true, next: next}.run(ctx, name)
	f.Processor, f.RegistryRequests = (g.used() - used).Seconds(), g.registry.Count()-before
	f.Remark = fmt.Sprintf("%d requests to the registry, %d retries", f.RegistryRequests, f.Retries)
	return f
}

// used returns the processor time of all replicas that run.
func (g *group) used() (all time.Duration) {
	for _, p := range g.replicas {
		all += processor(p.PID())
	}
	return all
}

// throughput asks for images that nobody asked for, then for the same ones several times, so
// that each replica is asked for what another one verified, and then for warm ones.
func (g *group) throughput(ctx context.Context) ([]figure, error) {
	name := fmt.Sprintf("replicas: %d, ", len(g.replicas))
	distinct := g.pairs(replicaNamespaces, g.cold)
	first := g.ask(ctx, name+"cold", distinct)
	again := g.ask(ctx, name+"asked again", func(i int) (request, bool) {
		if i >= askedAgain*first.Requests {
			return request{}, false
		}
		return distinct(i % first.Requests)
	})
	each := float64(first.RegistryRequests+again.RegistryRequests) / float64(max(first.Requests, 1))
	again.Remark += fmt.Sprintf("; %.1f requests to the registry for each image in all", each)
	for _, p := range g.replicas {
		if err := g.fill(ctx, p.url, replicaNamespaces); err != nil {
			return nil, err
		}
	}
	next, err := g.single(replicaNamespaces, gatekeeper.VerdictPath)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, g.duration)
	defer cancel()
	warm := g.ask(limited, name+"warm", next)
	warm.Remark += fmt.Sprintf(", %.0f µs of processor time each", warm.Processor*1e6/float64(max(warm.Requests, 1)))
	return []figure{first, again, warm}, nil
}

// during asks for images, warm ones and some cold ones, while something happens.
func (g *group) during(ctx context.Context, name string, happens func(context.Context) error) ([]figure, error) {
	warm, err := g.single(replicaNamespaces, gatekeeper.VerdictPath)
	if err != nil {
		return nil, err
	}
	cold := g.pairs(replicaNamespaces, 1<<30)
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		defer stop()
		failed <- happens(ctx)
	}()
	f := g.ask(loaded, "replicas: "+name, func(i int) (request, bool) {
		if i%coldShare == 0 {
			if r, ok := cold(i / coldShare); ok {
				return r, true
			}
		}
		return warm(i)
	})
	f.Processor = 0 // that of replicas which ended is not known
	return []figure{f}, <-failed
}

// lapse lets a part of the duration go by.
func (g *group) lapse(ctx context.Context) {
	select {
	case <-time.After(max(g.duration/4, 2*endpointLag)):
	case <-ctx.Done():
	}
}

// replaced kills one replica and adds another one.
func (g *group) replaced(ctx context.Context) ([]figure, error) {
	return g.during(ctx, "2, one killed, then one added", func(ctx context.Context) error {
		g.lapse(ctx)
		killed := g.replicas[0]
		killed.Kill()
		g.front.removeLater(killed)
		g.lapse(ctx)
		if err := g.start(ctx); err != nil {
			return err
		}
		g.lapse(ctx)
		return nil
	})
}

// loseMaster kills one of three masters, which comes back empty.
func (g *group) loseMaster(ctx context.Context) ([]figure, error) {
	return g.during(ctx, "2, a master of Redis killed, then back", func(ctx context.Context) error {
		g.lapse(ctx)
		g.redis.Masters[0].Kill()
		g.lapse(ctx)
		if err := g.redis.Masters[0].Restart(ctx); err != nil {
			return fmt.Errorf("start a master again: %w", err)
		}
		g.lapse(ctx)
		return nil
	})
}

// restarted replaces all replicas as a Deployment does: a new one is ready before an old one
// is told to end, and learns it at the same time as the Service.
func (g *group) restarted(ctx context.Context) ([]figure, error) {
	return g.during(ctx, "2, rolling restart", func(ctx context.Context) error {
		for _, old := range append([]*server{}, g.replicas...) {
			if err := g.start(ctx); err != nil {
				return err
			}
			g.lapse(ctx)
			g.front.removeLater(old)
			old.Terminate(shutdownGrace)
		}
		g.lapse(ctx)
		return nil
	})
}
