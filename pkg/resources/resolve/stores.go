package resolve

import (
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// storesAt holds the Stores of one level that apply in a namespace.
type storesAt struct {
	at     int // index of the level in the chain
	stores []compile.Store
	hosts  []string // served hosts, sorted
}

// storesByHost selects Stores of the levels from first on by host: for each host, the first by
// name at the nearest level that lists it. A Store without remaining hosts does not apply. A
// pattern stays unless an equal one came before, because its hosts are only known at request
// time. A broken Store with unknown hosts might be for any host, so it takes all remaining
// ones.
//
// For hosts that none of these levels lists, the nearest Store of the chain lends its access,
// but not its mirrors or evidence repositories.
func storesByHost(chain []NamedLevel, first int) (byHost []storesAt, stores []compile.Store) {
	all := selectStores(chain, first)
	for i := range all {
		if all[i].at < first {
			return all[:i], merged(all)
		}
	}
	return all, merged(all)
}

// selectStores returns the levels with Stores in the order of the lookup: first the levels
// from first on, then those that only lend access.
func selectStores(chain []NamedLevel, first int) []storesAt {
	var all []storesAt
	taken := map[string]bool{}
	for n := range chain {
		i := (first + n) % len(chain)
		l, here := chain[i], storesAt{at: i}
		for _, s := range l.stores {
			hosts := slices.DeleteFunc(s.Lists(), func(host string) bool { return taken[host] })
			if len(hosts) == 0 && !s.TakesAll() {
				continue
			}
			for _, host := range hosts {
				taken[host] = true
			}
			switch {
			case i < first:
				s.Store = s.WithoutLocations()
			case l.Label != LevelCluster: // all namespaces share the cluster's
				s = reached(s, chain[i:])
			}
			here.stores, here.hosts = append(here.stores, s), append(here.hosts, hosts...)
			if s.TakesAll() {
				return append(all, here)
			}
		}
		if i >= first && l.Label == LevelCluster && len(here.stores) == len(l.stores) {
			here.stores = l.stores // unchanged: hundreds of namespaces share them
		}
		if len(here.stores) > 0 {
			slices.Sort(here.hosts)
			here.hosts = slices.Compact(here.hosts)
			all = append(all, here)
		}
	}
	return all
}

// merged returns the Stores of all levels in the order of the lookup.
func merged(levels []storesAt) []compile.Store {
	if len(levels) == 1 {
		return levels[0].stores
	}
	var all []compile.Store
	for order, l := range levels {
		all = append(all, compile.MapSlice(l.stores, func(s compile.Store) compile.Store {
			s.Level = order
			return s
		})...)
	}
	return all
}

// Registries returns the hosts that the Stores of a level list by name, without patterns.
func (l *Level) Registries() []string {
	var hosts []string
	for _, s := range l.stores {
		hosts = append(hosts, s.Registries...)
	}
	return hosts
}

// Ignored returns the ignored entries of each Store's pull secrets, with reasons.
func (l *Level) Ignored() map[policy.ObjectRef][]string {
	all := map[policy.ObjectRef][]string{}
	for _, s := range l.stores {
		if len(s.Ignored) > 0 {
			all[s.Source] = s.Ignored
		}
	}
	return all
}

// Shadowed reports whether earlier Stores of the same level, by name, list all registries of
// a Store.
func (l *Level) Shadowed(source policy.ObjectRef) bool {
	taken := map[string]bool{}
	for _, s := range l.stores {
		if s.Source == source {
			return !s.TakesAll() && !slices.ContainsFunc(s.Lists(), func(host string) bool { return !taken[host] })
		}
		for _, host := range s.Lists() {
			taken[host] = true
		}
	}
	return false
}

func registryStores(stores []compile.Store) []registry.Store {
	return compile.MapSlice(stores, func(s compile.Store) registry.Store { return s.Store })
}

// reached returns a store with the Store that reaches each of its mirrors and evidence
// repositories: the nearest that lists the host, from the level of s on, or s itself. levels
// begin with the level of s. A namespace's Stores never reach the locations of a ClusterStore.
func reached(s compile.Store, levels []NamedLevel) compile.Store {
	if len(s.Mirrors)+len(s.Evidence) == 0 {
		return s
	}
	parts := []string{s.Fingerprint}
	via := func(location registry.Location) registry.Location {
		host := location.Template.Host()
		for _, l := range levels {
			if found, ok := registry.StoreFor(registryStores(l.stores), host); ok {
				i := slices.IndexFunc(l.stores, func(other compile.Store) bool { return other.Source == found.Source })
				parts = append(parts, l.stores[i].Fingerprint)
				location.Via = &found
				return location
			}
		}
		location.Via = s.ViaItself(host)
		return location
	}
	s.Mirrors = compile.MapSlice(s.Mirrors, func(m registry.Mirror) registry.Mirror {
		m.Location = via(m.Location)
		return m
	})
	s.Evidence = compile.MapSlice(s.Evidence, via)
	s.Fingerprint = compile.DigestOf(parts)
	return s
}

// reachStores resolves which Store reaches each location of the cluster's stores.
func (l *Level) reachStores() {
	own := []NamedLevel{{l, LevelCluster}}
	l.stores = compile.MapSlice(l.stores, func(s compile.Store) compile.Store { return reached(s, own) })
}
