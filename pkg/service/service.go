// Package service wires everything between an image reference and its verdict:
// the registry client, the caches, the engine, what is fetched in the
// background, and the resources in force. `landwaiter serve`, verify, explain
// and resolve run one, and so do the demo and the tests, so what they decide is
// decided alike. It reads no flags and no settings from files, and it does not
// log: callers report what it returns.
package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/revocation"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Options configure a [Service]. The zero value is safe and keeps results in
// memory only.
type Options struct {
	// Version is part of the keys in Redis and of the User-Agent.
	Version string
	// Registry configures the registry client; its UserAgent follows from Version.
	Registry registry.Options
	// Engine configures the engine.
	Engine verify.Options
	// CacheBytes bounds the memory for results. Default [cache.DefaultMemoryBytes].
	CacheBytes int64
	// Redis shares results among replicas; nil is none.
	Redis *Redis
	// Cache replaces memory and Redis, for benchmarks of what happens without one.
	Cache Cache
	// EgressHosts, as host or host:port, may be asked for revocation, and for keys
	// and roots that resources of a namespace keep outside of the cluster.
	EgressHosts []string
	// External configures how those are fetched; its Hosts are EgressHosts.
	External external.Options
	// Wait lets checks wait for what they need from elsewhere, as a command can. A
	// server answers Undecided and fetches it for the retry.
	Wait bool
}

// Redis says how to reach Redis, and how entries are sealed there.
type Redis struct {
	cache.Connection
	// Keys are the sealing keys as [cache.ParseSeal] reads them.
	Keys []byte
}

// Cache is a [verify.Cache] that can drop what it keeps for a namespace.
type Cache interface {
	verify.Cache
	Forget(namespace verify.Namespace)
}

// Service answers for images by namespace. It is safe for concurrent use. Before
// the first [Service.Apply], everything is Undecided.
type Service struct {
	*tenant.Service

	set        tenant.Set
	engine     *verify.Engine
	cache      Cache
	redis      *cache.Redis // nil without one
	registry   *registry.Client
	revocation *revocation.Prefetcher
	external   *external.Fetcher
	firstFetch time.Duration

	applying sync.Mutex
	objects  resource.Objects  // as applied last
	sources  []external.Source // that objects name
}

// firstFetch bounds how long the first compilation waits for what resources keep
// outside of the cluster. A server goes on soon without it; a command has nothing
// better to do.
const (
	firstFetch        = 2 * time.Second
	firstFetchPatient = 20 * time.Second
)

// New wires the parts. It connects to nothing yet.
func New(options Options) (*Service, error) {
	options.Registry.UserAgent = "landwaiter/" + cmp.Or(options.Version, "unknown")
	s := &Service{registry: registry.NewClient(options.Registry), firstFetch: firstFetch}
	if options.Wait {
		s.firstFetch = firstFetchPatient
	}
	if err := s.connectCache(options); err != nil {
		return nil, err
	}
	var err error
	if s.revocation, err = revocation.New(revocation.Options{Hosts: options.EgressHosts, Wait: options.Wait}, time.Now); err != nil {
		return nil, fmt.Errorf("egress hosts: %w", err)
	}
	options.External.Hosts = options.EgressHosts
	s.external = external.New(options.External, time.Now)
	s.engine = verify.NewEngine(s.cache, time.Now, options.Engine)
	s.SetFinder(nil)
	return s, nil
}

// connectCache sets the cache, and the one in Redis if there is one.
func (s *Service) connectCache(options Options) error {
	if options.Cache != nil {
		s.cache = options.Cache
		return nil
	}
	memory, err := cache.NewMemory(cmp.Or(options.CacheBytes, cache.DefaultMemoryBytes), time.Now)
	if err != nil {
		return err
	}
	memory.Shares(func(namespace verify.Namespace) cache.Share {
		config, err := s.set.For(namespace)
		if err != nil {
			return cache.Share{} // nothing is in force yet
		}
		return cache.Share{Account: config.Account, Percent: config.Limits.CachePercent}
	})
	s.cache = memory
	if options.Redis == nil {
		return nil
	}
	seal, err := cache.ParseSeal(options.Redis.Keys)
	if err != nil {
		return fmt.Errorf("sealing keys for Redis: %w", err)
	}
	client, err := cache.Connect(options.Redis.Connection)
	if err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	s.redis = cache.NewRedis(client, seal, options.Version, time.Now)
	s.cache = cache.Tiers{Memory: memory, Redis: s.redis}
	return nil
}

// Run does the work in the background until ctx ends: it shares results through
// Redis, if there is one, and fetches what checks need.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if s.redis != nil {
		group.Go(func() error { return s.redis.Run(ctx) })
	}
	group.Go(func() error { return s.revocation.Run(ctx) })
	group.Go(func() error { return s.external.Run(ctx) })
	return group.Wait()
}

// Close closes idle connections to registries.
func (s *Service) Close() { s.registry.Close() }

// Forget drops everything kept for a namespace that was deleted.
func (s *Service) Forget(namespace verify.Namespace) {
	s.cache.Forget(namespace)
	s.revocation.Forget(namespace)
	s.registry.Forget(namespace)
}

// SetFinder has namespaces looked up that the resources in force do not know; nil
// takes them as they are. Call it before the first request.
func (s *Service) SetFinder(finder tenant.Finder) {
	s.Service = tenant.NewService(&s.set, s.engine, finder)
}

// Set holds the resources in force. A controller swaps them there itself; others
// use [Service.Apply].
func (s *Service) Set() *tenant.Set { return &s.set }

// Outside gives compiled resources their way to registries and to revocation.
func (s *Service) Outside() compile.Outside {
	return compile.Outside{
		Registry:   s.registry.For,
		Revocation: s.revocation.For,
	}
}

// External fetches what resources keep outside of the cluster. A controller says
// itself what is wanted; [Service.Apply] does it for others.
func (s *Service) External() *external.Fetcher { return s.external }

// RedisStats counts what came of asking Redis; nil without one.
func (s *Service) RedisStats() *cache.Stats {
	if s.redis == nil {
		return nil
	}
	return &s.redis.Stats
}

// PassTTL is how long a verdict that allows is kept.
func (s *Service) PassTTL() time.Duration { return s.engine.PassTTL() }

// Apply compiles objects, puts them in force, and returns what their owners should
// correct. It waits a limited time for what is fetched for the first time; that
// needs [Service.Run].
func (s *Service) Apply(ctx context.Context, objects resource.Objects) []resource.Problem {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.objects = objects
	wanted := compile.Externals(objects)
	s.sources = slices.Concat(slices.Collect(maps.Values(wanted))...)
	s.external.KeepOnly(wanted)
	for namespace, sources := range wanted {
		s.external.Want(namespace, sources)
	}
	ctx, cancel := context.WithTimeout(ctx, s.firstFetch)
	defer cancel()
	s.external.Await(ctx)
	return s.swap()
}

// Reapply puts the same objects in force again whenever something fetched for them
// has changed, and calls report with the problems.
func (s *Service) Reapply(report func([]resource.Problem)) {
	s.external.Notify(func(verify.Namespace) {
		if s.set.Ready() != nil {
			return // the first Apply is waiting for it
		}
		s.applying.Lock()
		defer s.applying.Unlock()
		report(s.swap())
	})
}

func (s *Service) swap() []resource.Problem {
	snapshot, problems := compile.New(s.objects, s.external.Known(s.sources), s.Outside())
	s.set.Swap(snapshot)
	return problems
}
