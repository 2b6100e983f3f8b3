package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/external"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/revocation"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// engineFlags are the flags of every command that verifies.
type engineFlags struct {
	configDir    string
	clusterCIDRs []string
	egressHosts  []string
	cacheBytes   int64
	redis        redisFlags
	engine       verify.Options
	perHost      int
	perSecond    int
}

func (f *engineFlags) register(cmd *cobra.Command, configRequired bool) {
	flags := cmd.Flags()
	usage := "directory with resources as YAML or JSON files"
	if !configRequired {
		usage += ", instead of the Kubernetes API"
	}
	flags.StringVar(&f.configDir, "config-dir", "", usage)
	flags.StringSliceVar(&f.clusterCIDRs, "cluster-cidr", nil,
		"address range of pods and services that registries must not be in, besides the private ranges (repeatable)")
	flags.StringSliceVar(&f.egressHosts, "egress-host", nil,
		"host or host:port that certificates may name as OCSP responder or for revocation lists, and namespaces' TrustStores as Vault or TUF mirror (repeatable; default none)")
	if configRequired {
		if err := cmd.MarkFlagRequired("config-dir"); err != nil {
			panic(err) // the flag is declared just above
		}
	}
}

// desk is everything between an image reference and its verdict.
type desk struct {
	*tenant.Desk
	set    *tenant.Set
	engine *verify.Engine
	kept   keeper
	client *registry.Client
	redis  *cache.Redis // nil without one

	revocation *revocation.Prefetcher
	remote     *external.Fetcher

	compiling sync.Mutex
	objects   resource.Objects  // as compiled last
	sources   []external.Source // that objects name
}

// keeper is a cache that can forget a namespace.
type keeper interface {
	verify.Cache
	Forget(namespace verify.Namespace)
}

// work does what goes on beside requests until ctx ends: sharing verdicts, if
// there is a Redis, and fetching what checks need ahead of them.
func (d *desk) work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if d.redis != nil {
		group.Go(func() error { return d.redis.Run(ctx) })
	}
	group.Go(func() error { return d.revocation.Run(ctx) })
	group.Go(func() error { return d.remote.Run(ctx) })
	return group.Wait()
}

// forget drops what is kept for a namespace that is gone.
func (d *desk) forget(namespace verify.Namespace) {
	d.kept.Forget(namespace)
	d.revocation.Forget(namespace)
	d.client.Forget(namespace)
}

// newDesk makes the parts. With patient, checks wait for what they need from
// elsewhere, as commands can and a server cannot.
func (f *engineFlags) newDesk(patient bool) (*desk, error) {
	var denied []netip.Prefix
	for _, s := range f.clusterCIDRs {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr %q is not an address range such as 10.96.0.0/12: %w", s, err)
		}
		denied = append(denied, prefix)
	}
	if n := f.engine.InFlightPerAccount; n != 0 && n < verify.MinInFlight {
		return nil, fmt.Errorf("--in-flight-per-namespace is %d, the least is %d: one request has so many in work", n, verify.MinInFlight)
	}
	bytes := f.cacheBytes
	if bytes == 0 {
		bytes = cache.DefaultMemoryBytes
	}
	memory, err := cache.NewMemory(bytes, time.Now)
	if err != nil {
		return nil, err
	}
	d := &desk{set: &tenant.Set{}, kept: memory,
		client: registry.NewClient(registry.Options{DeniedPrefixes: denied, PerHost: f.perHost, PerSecond: f.perSecond, UserAgent: "landwaiter/" + versionText()})}
	if d.revocation, err = revocation.New(revocation.Options{Hosts: f.egressHosts, Wait: patient}, time.Now); err != nil {
		return nil, fmt.Errorf("--egress-host: %w", err)
	}
	d.remote = external.New(external.Options{Hosts: f.egressHosts}, time.Now)
	if d.redis, err = f.redis.open(); err != nil {
		return nil, err
	}
	if d.redis != nil {
		d.kept = cache.Tiers{Memory: memory, Redis: d.redis}
	}
	memory.Shares(func(namespace verify.Namespace) cache.Share {
		config, err := d.set.For(namespace)
		if err != nil {
			return cache.Share{} // nothing is in force yet
		}
		return cache.Share{Account: config.Account, Percent: config.Limits.CachePercent}
	})
	d.engine = verify.NewEngine(d.kept, time.Now, f.engine)
	d.Desk = tenant.NewDesk(d.set, d.engine, nil)
	return d, nil
}

// outside is how what is compiled reaches beyond this process.
func (d *desk) outside() compile.Outside {
	return compile.Outside{
		Registry:   d.client.For,
		Revocation: d.revocation.For,
	}
}

// firstFetch is how long compiling waits for what resources keep elsewhere: a
// server goes on without it soon, a command has nothing better to do.
const (
	firstFetch        = 2 * time.Second
	firstFetchPatient = 20 * time.Second
)

// compile puts objects in force and returns what their owners should correct. It
// waits for what is fetched for the first time until ctx ends.
func (d *desk) compile(ctx context.Context, objects resource.Objects) (*compile.Snapshot, []resource.Problem) {
	d.compiling.Lock()
	defer d.compiling.Unlock()
	d.objects = objects
	wanted := compile.Externals(objects)
	d.sources = slices.Concat(slices.Collect(maps.Values(wanted))...)
	d.remote.KeepOnly(wanted)
	for namespace, sources := range wanted {
		d.remote.Want(namespace, sources)
	}
	d.remote.Await(ctx)
	return d.put()
}

// recompile puts the same objects in force with what was fetched meanwhile.
func (d *desk) recompile() (*compile.Snapshot, []resource.Problem) {
	d.compiling.Lock()
	defer d.compiling.Unlock()
	return d.put()
}

func (d *desk) put() (*compile.Snapshot, []resource.Problem) {
	objects := d.objects
	snapshot, problems := compile.New(objects, d.remote.Known(d.sources), d.outside())
	d.set.Swap(snapshot)
	return snapshot, problems
}

// load reads --config-dir once and puts it in force, for a command that ends
// soon after with ctx; problems go to stderr.
func (f *engineFlags) load(ctx context.Context, stderr io.Writer) (*desk, *compile.Snapshot, error) {
	d, err := f.newDesk(true)
	if err != nil {
		return nil, nil, err
	}
	go func() { _ = d.work(ctx) }() // without a Redis nothing of it can fail
	objects, problems, err := configdir.Load(f.configDir)
	if err != nil {
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, firstFetchPatient)
	defer cancel()
	snapshot, more := d.compile(limited, objects)
	for _, p := range distinct(problems, more) {
		fmt.Fprintf(stderr, "warning: %s: %s\n", p.Source, p.Message)
	}
	return d, snapshot, nil
}

// distinct joins what reading and compiling say: an object that could not be read
// is a problem of both.
func distinct(reading, compiling []resource.Problem) []resource.Problem {
	said := map[policy.ObjectRef]bool{}
	for _, p := range reading {
		said[p.Source] = true
	}
	return append(reading, slices.DeleteFunc(compiling, func(p resource.Problem) bool { return said[p.Source] })...)
}
