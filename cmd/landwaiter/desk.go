package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// engineFlags are the flags of every command that verifies.
type engineFlags struct {
	configDir    string
	clusterCIDRs []string
	cacheBytes   int64
	redis        redisFlags
	engine       verify.Options
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
}

// keeper is a cache that can forget a namespace.
type keeper interface {
	verify.Cache
	Forget(namespace verify.Namespace)
}

// share lets replicas share verdicts until ctx ends, if there is a Redis.
func (d *desk) share(ctx context.Context) error {
	if d.redis == nil {
		return nil
	}
	return d.redis.Run(ctx)
}

func (f *engineFlags) newDesk() (*desk, error) {
	var denied []netip.Prefix
	for _, s := range f.clusterCIDRs {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr %q is not an address range such as 10.96.0.0/12: %w", s, err)
		}
		denied = append(denied, prefix)
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
		client: registry.NewClient(registry.Options{DeniedPrefixes: denied, UserAgent: "landwaiter/" + versionText()})}
	if d.redis, err = f.redis.open(); err != nil {
		return nil, err
	}
	if d.redis != nil {
		d.kept = cache.Tiers{Memory: memory, Redis: d.redis}
	}
	d.engine = verify.NewEngine(d.kept, time.Now, f.engine)
	d.Desk = tenant.NewDesk(d.set, d.engine, nil)
	return d, nil
}

// open makes the registry client for what one tenant may reach.
func (d *desk) open(a registry.Access) verify.Registry { return d.client.For(a) }

// compile puts objects in force and returns what their owners should correct.
func (d *desk) compile(objects tenant.Objects) (*tenant.Snapshot, []tenant.Problem) {
	snapshot, problems := tenant.Compile(objects, d.open)
	d.set.Swap(snapshot)
	return snapshot, problems
}

// load reads --config-dir once and puts it in force; problems go to stderr.
func (f *engineFlags) load(stderr io.Writer) (*desk, *tenant.Snapshot, error) {
	d, err := f.newDesk()
	if err != nil {
		return nil, nil, err
	}
	objects, problems, err := configdir.Load(f.configDir)
	if err != nil {
		return nil, nil, err
	}
	snapshot, more := d.compile(objects)
	for _, p := range distinct(problems, more) {
		fmt.Fprintf(stderr, "warning: %s: %s\n", p.Source, p.Message)
	}
	return d, snapshot, nil
}

// distinct joins what reading and compiling say: an object that could not be read
// is a problem of both.
func distinct(reading, compiling []tenant.Problem) []tenant.Problem {
	said := map[policy.Source]bool{}
	for _, p := range reading {
		said[p.Source] = true
	}
	return append(reading, slices.DeleteFunc(compiling, func(p tenant.Problem) bool { return said[p.Source] })...)
}
