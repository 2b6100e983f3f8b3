// Package service wires everything between an image reference and its verdict: the registry
// client, the caches, the engine, background fetching, and the current resources.
// `landwaiter-server serve` and verify use it, and so do the demo and the tests, so all of
// them decide in the same way. It reads no flags and no settings from files, and it does not
// log: callers report its results.
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

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/revocation"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Options configure a [Service]. The zero value is safe and keeps results in
// memory only.
type Options struct {
	// Version is part of the keys in Redis and of the User-Agent.
	Version string
	// Registry configures the registry client. Its UserAgent is set from Version, and its
	// Observe counts for [Service.Register].
	Registry registry.Options
	Engine   verify.Options
	// CacheBytes bounds the in-memory cache. Default [cache.DefaultMemoryBytes].
	CacheBytes int64
	// Redis shares results among replicas; nil disables it.
	Redis *Redis
	// Cache replaces memory and Redis, for benchmarks without a cache.
	Cache Cache
	// EgressHosts lists the hosts (host or host:port) that may be contacted for revocation
	// checks, and for external keys and roots of namespaced resources.
	EgressHosts []string
	// External configures the fetching of external data. Its Hosts are set from EgressHosts. It
	// also gets the Proxy and Endpoints of the registry client.
	External external.Options
	// Exceptions are an admin's limits on exceptions.
	Exceptions resource.ExceptionLimits
	// ClusterResourceNamespace is the namespace of objects that cluster resources of
	// [Service.Apply] reference, unless the objects name another one.
	ClusterResourceNamespace string
	// Wait lets checks wait for external data, for commands. A server answers
	// Undecided and fetches the data for the retry.
	Wait bool
}

// Redis configures the connection to Redis and the encryption of entries.
type Redis struct {
	cache.Connection
	// Keys are the sealing keys as [cache.ParseSeal] reads them.
	Keys []byte
	// Changed is [cache.Redis.Changed].
	Changed func(doing string, err error)
}

// Cache is a [verify.Cache] that can drop the entries of a namespace.
type Cache interface {
	verify.Cache
	Forget(namespace verify.Namespace)
}

// Service decides about images by namespace. It is safe for concurrent use. Before
// the first [Service.Apply], every image is Undecided.
type Service struct {
	*Decider

	cache      Cache
	memory     *cache.Memory // nil if Options.Cache replaces it
	evidence   *cache.Memory // nil if Options.Cache replaces it
	redis      *cache.Redis  // nil without one
	namespaces *namespaces   // with their own series
	requests   *requests
	registry   *registry.Client
	revocation *revocation.Prefetcher
	external   *external.Fetcher
	firstFetch time.Duration
	exceptions resource.ExceptionLimits
	// clusterResources is [Options.ClusterResourceNamespace].
	clusterResources string

	applying sync.Mutex
	objects  resource.Objects                       // last applied
	wanted   map[verify.Namespace][]external.Source // referenced by objects
}

// firstFetch and firstFetchPatient bound how long Apply waits for external data. A
// server soon continues without it; a command waits longer.
const (
	firstFetch        = 2 * time.Second
	firstFetchPatient = 20 * time.Second
)

// New returns a Service that looks up namespaces that are not in the current snapshot with
// finder. It opens no connections.
func New(options Options, finder Finder) (*Service, error) {
	s := &Service{firstFetch: firstFetch, exceptions: options.Exceptions, clusterResources: options.ClusterResourceNamespace}
	s.namespaces = newNamespaces(s.exists)
	s.requests = newRequests(s.namespaces.label)
	options.Registry.UserAgent, options.Registry.Observe = "landwaiter/"+cmp.Or(options.Version, "unknown"), s.requests.observe
	options.Registry.Proxy, options.Registry.Endpoints = options.External.Proxy, options.External.Endpoints
	s.registry = registry.NewClient(options.Registry)
	if options.Wait {
		s.firstFetch = firstFetchPatient
	}
	if err := s.connectCache(options); err != nil {
		return nil, err
	}
	s.Decider = NewDecider(&Set{}, verify.NewEngine(s.cache, time.Now, options.Engine), finder)
	var err error
	if s.revocation, err = revocation.New(revocation.Options{Hosts: options.EgressHosts, Account: s.Account, Wait: options.Wait},
		time.Now); err != nil {
		return nil, fmt.Errorf("egress hosts: %w", err)
	}
	options.External.Hosts, options.External.Account, options.External.Wait = options.EgressHosts, s.Account, options.Wait
	s.external = external.New(options.External, time.Now)
	return s, nil
}

// Tenant returns the name of the Tenant that holds a namespace, "" if none does.
func (s *Service) Tenant(namespace verify.Namespace) string {
	if snapshot := s.set.Snapshot(); snapshot != nil {
		return snapshot.Tenant(namespace)
	}
	return ""
}

// Namespaces returns the namespaces that exist, and [verify.Cluster], sorted; none before the first
// snapshot.
func (s *Service) Namespaces() []verify.Namespace {
	if snapshot := s.set.Snapshot(); snapshot != nil {
		return snapshot.Namespaces()
	}
	return nil
}

// Quota returns the name of the ClusterQuota that applies to a namespace, "" if it has the default
// quota.
func (s *Service) Quota(namespace verify.Namespace) string {
	if snapshot := s.set.Snapshot(); snapshot != nil {
		return snapshot.Cluster().QuotaSources[snapshot.Account(namespace)].Name
	}
	return ""
}

// exists reports whether the resources in force cover a namespace: in a cluster, whether it
// exists.
func (s *Service) exists(namespace verify.Namespace) bool {
	snapshot := s.set.Snapshot()
	return snapshot != nil && snapshot.Has(namespace)
}

// NamespaceLabel returns the namespace's label in metrics: its own name if it exists and is
// within the limit, else a common one.
func (s *Service) NamespaceLabel(namespace verify.Namespace) string {
	return s.namespaces.label(namespace)
}

// connectCache sets up the cache: memory, plus Redis if configured.
func (s *Service) connectCache(options Options) error {
	if options.Cache != nil {
		s.cache = options.Cache
		return nil
	}
	size := cmp.Or(options.CacheBytes, cache.DefaultMemoryBytes)
	memory, err := cache.NewMemory(size, time.Now)
	if err != nil {
		return err
	}
	evidence, err := cache.NewMemory(max(size/2, 1), time.Now)
	if err != nil {
		return err
	}
	shares := func(namespace verify.Namespace) cache.Share {
		config, err := s.set.For(namespace)
		if err != nil {
			return cache.Share{} // no snapshot yet
		}
		return cache.Share{Account: config.Account, Percent: config.Limits.CachePercent}
	}
	memory.Shares(shares)
	evidence.Shares(shares)
	s.cache, s.memory, s.evidence = cache.Chain{Memory: memory, Evidence: evidence}, memory, evidence
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
	s.redis.Changed, s.redis.PassTTL, s.redis.DenyTTL = options.Redis.Changed, options.Engine.PassTTL, options.Engine.DenyTTL
	s.cache = cache.Chain{Memory: memory, Evidence: evidence, Redis: s.redis}
	return nil
}

// UseRedis replaces the connection to Redis, if there is one, after its password or certificates
// changed.
func (s *Service) UseRedis(ctx context.Context, connection cache.Connection) error {
	if s.redis == nil {
		return nil
	}
	client, err := cache.Connect(connection)
	if err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	s.redis.Use(ctx, client)
	return nil
}

// Run does the background work until ctx ends: sharing results through Redis, if
// configured, and fetching external data.
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

// Forget drops all cached data of a deleted namespace.
func (s *Service) Forget(namespace verify.Namespace) {
	s.cache.Forget(namespace)
	s.revocation.Forget(namespace)
	s.external.Forget(namespace)
	s.registry.Forget(namespace)
	s.forgetSeries(namespace)
}

func (s *Service) forgetSeries(namespace verify.Namespace) {
	s.namespaces.drop(namespace)
	s.requests.forget(namespace)
}

// Prune drops the metrics of namespaces that no longer exist, and calls forget with each.
// It is for namespaces in files: a controller calls [Service.Forget].
func (s *Service) Prune(forget func(verify.Namespace)) {
	for _, namespace := range s.namespaces.values() {
		if !s.exists(namespace) {
			s.forgetSeries(namespace)
			forget(namespace)
		}
	}
}

// Outside returns the clients for registries and revocation that compiled resources
// use.
func (s *Service) Outside() resolve.Outside {
	outside := resolve.Outside{Registry: s.registry.For, Revocation: s.revocation.For, Exceptions: s.exceptions}
	if external.KnowsAWS() {
		outside.AWSSigner = s.external.AWSSigner
	}
	return outside
}

// External returns the fetcher of external data. A controller tells it what to fetch;
// otherwise [Service.Apply] does.
func (s *Service) External() *external.Fetcher { return s.external }

// RedisStats returns the counters of Redis commands, nil without Redis.
func (s *Service) RedisStats() *cache.Stats {
	if s.redis == nil {
		return nil
	}
	return &s.redis.Stats
}

// PassTTL returns how long an Allowed verdict is cached.
func (s *Service) PassTTL() time.Duration { return s.engine.PassTTL() }

// Apply compiles objects, makes them current, and returns problems that their owners
// should fix. It waits a limited time for the first fetch of external data, which
// needs [Service.Run].
func (s *Service) Apply(ctx context.Context, objects resource.Objects) []resource.Problem {
	s.applying.Lock()
	defer s.applying.Unlock()
	objects.ClusterResourceNamespace = cmp.Or(objects.ClusterResourceNamespace, s.clusterResources)
	s.objects = objects
	levels := resolve.Group(objects)
	s.wanted = levels.Externals()
	s.external.KeepOnly(s.wanted)
	for namespace, sources := range s.wanted {
		s.external.Want(namespace, sources)
	}
	ctx, cancel := context.WithTimeout(ctx, s.firstFetch)
	defer cancel()
	s.external.Await(ctx)
	return s.swap(levels)
}

// Reapply recompiles the last objects whenever external data changes, and calls
// report with the problems.
func (s *Service) Reapply(report func([]resource.Problem)) {
	s.external.Notify(func(verify.Namespace) {
		if s.set.Ready() != nil {
			return // the first Apply is waiting for the data
		}
		s.applying.Lock()
		defer s.applying.Unlock()
		report(s.swap(resolve.Group(s.objects)))
	})
}

func (s *Service) swap(levels resolve.Levels) []resource.Problem {
	snapshot, problems := resolve.Empty(s.Outside()).Next(levels, s.known(s.wanted))
	s.set.Swap(snapshot)
	return problems
}

// known returns the fetched data for the sources of all namespaces.
func (s *Service) known(wanted map[verify.Namespace][]external.Source) external.Fetched {
	return s.external.Known(slices.Concat(slices.Collect(maps.Values(wanted))...))
}
