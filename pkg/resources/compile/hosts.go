package compile

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
)

// storesAt holds the Stores of one level that apply in a namespace.
type storesAt struct {
	at     int // index of the level in the chain
	stores []store
	hosts  []string // that they serve, sorted
}

// storesByHost selects Stores of the levels from one on by host: for each host, the first by
// name at the nearest level that lists it. A Store none of whose hosts are left does not
// apply. A pattern is left unless an equal one came before: which hosts it is for, requests
// tell. A broken Store whose hosts are unknown might be for any, so it takes all that are left.
//
// For the hosts that none of these levels lists, the nearest Store of the chain lends how
// they are reached, but not where else images or evidence are.
func storesByHost(chain []rung, first int) (byHost []storesAt, stores []store) {
	if last := chain[len(chain)-1]; last.objects.hidden[v1beta1.KindStore] != nil && last.hiddenStore() == nil {
		// ClusterStores also say how the hosts of nearer Stores are reached.
		return []storesAt{{at: len(chain) - 1, stores: last.stores}}, last.stores
	}
	all := selectStores(chain, first)
	if hidden := chain[len(chain)-1].hiddenStore(); hidden != nil { // it is for what no other lists
		all = append(all, storesAt{at: len(chain) - 1, stores: []store{*hidden}})
	}
	for i := range all {
		if all[i].at < first {
			return all[:i], merged(all)
		}
	}
	return all, merged(all)
}

// selectStores returns the levels with Stores in the order in which they are looked at: those
// from one on, then those that only lend theirs.
func selectStores(chain []rung, first int) []storesAt {
	var all []storesAt
	taken := map[string]bool{}
	hidden := chain[len(chain)-1].hiddenStore()
	for n := range chain {
		i := (first + n) % len(chain)
		l, here := chain[i], storesAt{at: i}
		for _, s := range l.stores {
			if len(s.Except) > 0 {
				continue
			}
			if hidden != nil && l.label != LevelCluster {
				s = s.asFarAsKnown(hidden)
			}
			hosts := slices.DeleteFunc(s.lists(), func(host string) bool { return taken[host] })
			if len(hosts) == 0 && !s.takesAll() {
				continue
			}
			for _, host := range hosts {
				taken[host] = true
			}
			switch {
			case i < first:
				s.Store = s.WithoutLocations()
			case l.label != LevelCluster: // the cluster's are for all namespaces alike
				s = reached(s, chain[i:])
			}
			here.stores, here.hosts = append(here.stores, s), append(here.hosts, hosts...)
			if s.takesAll() {
				return append(all, here)
			}
		}
		if i >= first && l.label == LevelCluster && len(here.stores) == len(l.stores) {
			here.stores = l.stores // as they are: hundreds of namespaces share them
		}
		if len(here.stores) > 0 {
			slices.Sort(here.hosts)
			here.hosts = slices.Compact(here.hosts)
			all = append(all, here)
		}
	}
	return all
}

// merged returns the Stores of all levels in their order, as registries look for them.
func merged(levels []storesAt) []store {
	if len(levels) == 1 {
		return levels[0].stores
	}
	var all []store
	for order, l := range levels {
		all = append(all, mapSlice(l.stores, func(s store) store {
			s.Level = order
			return s
		})...)
	}
	return all
}

// storeChoices explains which Stores apply.
func (v *view) storeChoices() []Choice {
	var choices []Choice
	told := map[policy.ObjectRef]bool{}
	for _, a := range v.applies {
		for _, c := range v.storesOf(a) {
			if c.Applied = slices.DeleteFunc(c.Applied, func(source policy.ObjectRef) bool { return told[source] }); len(c.Applied) == 0 {
				continue
			}
			for _, source := range c.Applied {
				told[source] = true
			}
			choices = append(choices, c)
		}
	}
	if len(choices) == 0 {
		return []Choice{v.none(v1beta1.KindStore)}
	}
	return choices
}

// storesOf explains the Stores of a. Those that only lend apply to other images anyway.
func (v *view) storesOf(a *applicable) []Choice {
	levels := a.byHost
	return mapSlice(levels, func(l storesAt) Choice {
		why := "for " + joinNames(l.hosts)
		switch {
		case a != v.applicable:
			why = "for " + a.left()
		case l.at == v.last() && len(levels) == 1:
			why = v.whyAt(l.at, v1beta1.KindStore)
		case slices.ContainsFunc(l.stores, store.takesAll):
			why = "one of them cannot be used and its registries are unknown, so it denies every registry that is not listed before it"
		case l.at > levels[0].at:
			why += ", which no nearer level lists"
		}
		return v.choice(l.at, v1beta1.KindStore, mapSlice(l.stores, func(s store) policy.ObjectRef { return s.Source }), why)
	})
}

// shadowed reports whether Stores of the same level that come first by name list all
// registries of a Store.
func (l *level) shadowed(source policy.ObjectRef) bool {
	taken := map[string]bool{}
	for _, s := range l.stores {
		if s.Source == source {
			return !s.takesAll() && !slices.ContainsFunc(s.lists(), func(host string) bool { return !taken[host] })
		}
		for _, host := range s.lists() {
			taken[host] = true
		}
	}
	return false
}

func registryStores(stores []store) []registry.Store {
	return mapSlice(stores, func(s store) registry.Store { return s.Store })
}

// reached returns a store with the store that says how to reach each of its places: the nearest
// that lists the host, from the level of s on, or s itself. levels begin with that of s. A
// ClusterStore's places are never reached with what a namespace says.
func reached(s store, levels []rung) store {
	if len(s.Mirrors)+len(s.Evidence) == 0 {
		return s
	}
	parts := []string{s.fingerprint}
	via := func(location registry.Location) registry.Location {
		host := location.Template.Host()
		for _, l := range levels {
			if found, ok := registry.StoreFor(registryStores(l.stores), host); ok {
				i := slices.IndexFunc(l.stores, func(other store) bool { return other.Source == found.Source })
				parts = append(parts, l.stores[i].fingerprint)
				location.Via = &found
				return location
			}
		}
		location.Via = s.ViaItself(host)
		return location
	}
	s.Mirrors = mapSlice(s.Mirrors, func(m registry.Mirror) registry.Mirror {
		m.Location = via(m.Location)
		return m
	})
	s.Evidence = mapSlice(s.Evidence, via)
	s.fingerprint = digestOf(parts)
	return s
}

// reachStores makes the cluster's stores say how to reach their places.
func (l *level) reachStores() {
	own := []rung{{l, LevelCluster}}
	l.stores = mapSlice(l.stores, func(s store) store { return reached(s, own) })
}
