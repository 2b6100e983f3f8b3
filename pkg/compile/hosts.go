package compile

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
)

// storesAt holds the Stores of one level that apply in a namespace.
type storesAt struct {
	at     int // index of the level in the chain
	stores []store
	hosts  []string // that they serve, sorted
}

// storesByHost selects Stores by host: for each host, the first by name at the nearest
// level that lists it. A Store none of whose hosts are left does not apply. A broken Store
// whose hosts are unknown might be for any, so it takes all that are left.
func storesByHost(chain []rung) []storesAt {
	var all []storesAt
	taken := map[string]bool{}
	for i, l := range chain {
		here := storesAt{at: i}
		for _, s := range l.stores {
			hosts := slices.DeleteFunc(slices.Clone(s.Registries), func(host string) bool { return taken[host] })
			if len(hosts) == 0 && len(s.Registries) > 0 {
				continue
			}
			for _, host := range hosts {
				taken[host] = true
			}
			if l.label != LevelCluster { // the cluster's are for all namespaces alike
				s = s.reached(chain[i:])
			}
			here.stores, here.hosts = append(here.stores, s), append(here.hosts, hosts...)
			if s.takesAll() {
				return append(all, here)
			}
		}
		if len(here.stores) > 0 {
			slices.Sort(here.hosts)
			here.hosts = slices.Compact(here.hosts)
			all = append(all, here)
		}
	}
	return all
}

// takesAll reports whether s is broken and for every host.
func (s store) takesAll() bool { return s.Broken != "" && len(s.Registries) == 0 }

// merged returns the Stores of all levels, nearest first, as registries look for them.
func merged(levels []storesAt) []store {
	if len(levels) == 1 {
		return levels[0].stores
	}
	var all []store
	for _, l := range levels {
		all = append(all, l.stores...)
	}
	return all
}

// storeChoices explains which Stores apply.
func (v *view) storeChoices(levels []storesAt) []Choice {
	if len(levels) == 0 {
		return []Choice{v.none(v1alpha1.KindStore)}
	}
	return mapSlice(levels, func(l storesAt) Choice {
		why := "for " + joinNames(l.hosts)
		switch {
		case l.at == v.last() && len(levels) == 1:
			why = v.whyAt(l.at, v1alpha1.KindStore)
		case slices.ContainsFunc(l.stores, store.takesAll):
			why = "one of them cannot be used and its registries are unknown, so it denies every registry that is not listed before it"
		case l.at > levels[0].at:
			why += ", which no nearer level lists"
		}
		return v.choice(l.at, v1alpha1.KindStore, mapSlice(l.stores, func(s store) policy.ObjectRef { return s.Source }), why)
	})
}

// shadowed reports whether Stores of the same level that come first by name list all
// registries of a Store.
func (l *level) shadowed(source policy.ObjectRef) bool {
	taken := map[string]bool{}
	for _, s := range l.stores {
		if s.Source == source {
			return len(s.Registries) > 0 && !slices.ContainsFunc(s.Registries, func(host string) bool { return !taken[host] })
		}
		for _, host := range s.Registries {
			taken[host] = true
		}
	}
	return false
}

func registryStores(stores []store) []registry.Store {
	return mapSlice(stores, func(s store) registry.Store { return s.Store })
}
