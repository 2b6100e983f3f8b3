package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// PatternRule is a [HostRule] for the hosts that a pattern matches.
type PatternRule struct {
	Hosts image.HostPattern
	Rule  HostRule
}

// Proxy is the proxy of a ClusterStore.
type Proxy struct {
	// Own replaces the proxy of the environment, except for the hosts of Bypass.
	Own    *egress.Proxy
	Bypass egress.Bypass
	// AdditionalHosts are hosts that registries redirect to and that use the same proxy.
	AdditionalHosts []image.HostPattern
	// Broken, if set, is why the proxy cannot be used. Its hosts are then unreachable.
	Broken error
}

// Unusable returns the permanent error of an unusable [Store]. fix is the command that repairs it,
// "" if none is known.
func Unusable(why, fix string) error {
	return verify.PermanentWith(policy.ReasonBrokenResource, errors.New(why),
		cmp.Or(fix, "correct the Store, or ask its owner to; its condition Ready, or landwaiter check for files, says what is wrong"))
}

// Through makes p use the proxy at url, except for the hosts of bypass, which has the form of
// NO_PROXY. It returns an error if url is not a proxy's.
func (p *Proxy) Through(url, bypass string) (err error) {
	p.Bypass = egress.NewBypass(bypass)
	if p.Own, err = egress.ParseProxy(url); err != nil {
		return fmt.Errorf("read the URL of a proxy: %w", err)
	}
	return nil
}

// serves reports whether the store lists a host, by name or by pattern.
func (s Store) serves(host string) bool {
	return slices.Contains(s.Registries, host) || slices.ContainsFunc(s.Patterns, func(p image.HostPattern) bool { return p.Match(host) })
}

// takesAll reports whether s is broken and its hosts are unknown.
func (s Store) takesAll() bool { return s.Broken != nil && len(s.Registries)+len(s.Patterns) == 0 }

// WithoutLocations returns the store without mirrors and evidence repositories.
func (s Store) WithoutLocations() Store {
	s.Mirrors, s.Evidence, s.EvidenceExclusive = nil, nil, false
	return s
}

// StoreFor returns the store that applies to a host. Without one, access is anonymous.
func (a Access) StoreFor(host string) Store {
	store, _ := StoreFor(a.Stores, host)
	return store
}

// StoreFor returns the store that applies to a host, the nearest level first, and whether
// there is one. Within a level, the first that lists the host by name precedes the first with
// a pattern, and a broken store with unknown hosts comes last.
func StoreFor(stores []Store, host string) (Store, bool) {
	for begin := 0; begin < len(stores); {
		level := stores[begin:]
		if i := slices.IndexFunc(level, func(s Store) bool { return s.Level != level[0].Level }); i > 0 {
			level = level[:i]
		}
		for _, applies := range []func(Store) bool{
			func(s Store) bool { return slices.Contains(s.Registries, host) },
			func(s Store) bool { return s.serves(host) },
			Store.takesAll,
		} {
			if i := slices.IndexFunc(level, applies); i >= 0 {
				return level[i], true
			}
		}
		begin += len(level)
	}
	return Store{}, false
}

// rule returns what the cluster admin allows for a host, and whether a ClusterStore lists
// it at all, by name or by pattern.
func (a Access) rule(host string) (rule HostRule, listed bool) {
	if rule, ok := a.Hosts[host]; ok {
		return rule, true
	}
	for _, p := range a.Patterns {
		if p.Hosts.Match(host) {
			return p.Rule, true
		}
	}
	return HostRule{}, false
}

// named reports whether a cluster admin listed a host by its name. A pattern does not name a
// host: the author of a pod chooses among its matches.
func (a Access) named(host string) bool {
	_, named := a.Hosts[host]
	return named
}

// proxy returns the proxy for a request to a host, dialled as address, for an image of
// origin; nil for none. A proxy resolves names beyond the guard's control, so it is only used
// for hosts that a ClusterStore lists, and for its additional hosts.
func (c *Client) proxy(a Access, origin, host, address string) (*egress.Proxy, error) {
	if c.options.Endpoints.Contain(address) {
		return nil, nil //nolint:nilnil // an admin says where it is
	}
	rule, listed := a.rule(host)
	if !listed {
		of, _ := a.rule(origin)
		if of.Proxy == nil || !slices.ContainsFunc(of.Proxy.AdditionalHosts, func(p image.HostPattern) bool { return p.Match(host) }) {
			return nil, nil //nolint:nilnil // direct
		}
		rule.Proxy = of.Proxy
	}
	switch via := rule.Proxy; {
	case rule.PlainHTTP:
		return nil, nil //nolint:nilnil // a tunnel is for TLS
	case via != nil && via.Broken != nil:
		return nil, via.Broken
	case via == nil || via.Own == nil:
		return c.options.Proxy.For(address), nil
	case via.Bypass.Contains(address):
		return nil, nil //nolint:nilnil // direct
	default:
		return via.Own, nil
	}
}
