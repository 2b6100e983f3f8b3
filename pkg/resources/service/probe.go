package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const (
	// maxProbedRegistries bounds the registries that are probed.
	maxProbedRegistries = 32
	// registriesEvery is the interval between two probes of a registry.
	registriesEvery = 5 * time.Minute
	// registryRetry is the first interval after a failed probe. It doubles up to registryLongest, because
	// the registry may limit requests: people wait for the end of an outage.
	registryRetry   = 10 * time.Second
	registryLongest = 40 * time.Second
	// registryTimeout bounds the probe of one registry, so that a hanging registry does not delay
	// the others.
	registryTimeout = 3 * time.Second
)

// RedisFacts returns the permissions of Landwaiter in Redis, nothing without Redis.
func (s *Service) RedisFacts(ctx context.Context) []resource.Fact {
	if s.redis == nil {
		return nil
	}
	found := s.redis.Look(ctx)
	switch {
	case found.Answer != "":
		return []resource.Fact{{ID: resource.FactRedisUnreachable, Bad: true, Message: "Redis answers with an error: " + found.Answer}}
	case found.Err != nil: // its text may have an address
		return []resource.Fact{{ID: resource.FactRedisUnreachable, Bad: true, Message: "Redis does not answer"}}
	}
	facts := []resource.Fact{{ID: resource.FactRedisUnreachable, Message: "Redis answers"},
		{ID: resource.FactRedisPermissions, Message: "Redis takes every command that Landwaiter sends"}}
	if found.Slow {
		facts[0] = resource.Fact{ID: resource.FactRedisUnreachable, Bad: true,
			Message: fmt.Sprintf("Redis answers after %s, and no request waits so long", found.Took.Round(time.Millisecond))}
	}
	if len(found.Denied) > 0 {
		facts[1] = resource.Fact{ID: resource.FactRedisPermissions, Bad: true, Message: "Redis does not let Landwaiter's user send " +
			strings.Join(found.Denied, ", ")}
	}
	switch {
	case found.Refused != "":
		facts = append(facts, resource.Fact{ID: resource.FactRedisEviction, Bad: true, Message: "Redis refuses new entries: " + found.Refused})
	case found.Full != "":
		facts = append(facts,
			resource.Fact{ID: resource.FactRedisEviction, Bad: true, Message: "Redis has a limit of memory and maxmemory-policy " + found.Full})
	case found.Memory:
		facts = append(facts, resource.Fact{ID: resource.FactRedisEviction, Message: "Redis drops old entries when it is full, or has no limit"})
	}
	return facts
}

// RegistryFacts returns a function that probes the registries that ClusterStores list by name, and adds what
// verification found missing there. It remembers each result, so calls must not overlap.
func (s *Service) RegistryFacts() func(context.Context) []resource.Fact {
	probe := &registryProbe{resolve: s.Resolve, referrers: s.registry.HasReferrers, now: time.Now, hosts: func() []string {
		if snapshot := s.set.Snapshot(); snapshot != nil {
			return snapshot.Cluster().Registries()
		}
		return nil
	}}
	return probe.look
}

// registryProbe probes the registries that ClusterStores list by name.
type registryProbe struct {
	hosts   func() []string
	resolve func(context.Context, verify.Namespace, image.Reference) (image.Reference, error)
	now     func() time.Time
	// referrers says whether a host has the referrers API, as verification recently found.
	referrers func(host string) (has, known bool)

	asked map[string]asked // by host
}

// asked is a registry's last result, and the time of the next probe.
type asked struct {
	fact resource.Fact
	api  resource.Fact // the last known fact, without ID until there is one
	next time.Time
	wait time.Duration // since the time before
}

// look requests an image that does not exist. A registry that says so is reachable. A fact
// stays valid until the next probe of its registry.
func (p *registryProbe) look(ctx context.Context) []resource.Fact {
	hosts := slices.Compact(slices.Sorted(slices.Values(p.hosts())))
	hosts = hosts[:min(len(hosts), maxProbedRegistries)]
	now := p.now()
	found := make([]asked, len(hosts))
	var running sync.WaitGroup
	for i, host := range hosts {
		found[i] = p.asked[host]
		if found[i].next.After(now) {
			continue
		}
		running.Go(func() { found[i] = found[i].then(p.ask(ctx, host), now) })
	}
	running.Wait()
	p.asked = map[string]asked{}
	var facts []resource.Fact
	for i, host := range hosts {
		if found[i].fact.ID == "" {
			continue // rules are not in force yet
		}
		if has, known := p.referrers(host); known {
			found[i].api = apiFact(host, has)
		}
		p.asked[host] = found[i]
		facts = append(facts, found[i].fact)
		if found[i].api.ID != "" {
			facts = append(facts, found[i].api)
		}
	}
	return facts
}

// then returns the current fact about a registry.
func (a asked) then(fact resource.Fact, now time.Time) asked {
	wait := registriesEvery
	if fact.Bad {
		wait = registryRetry
		if a.fact.Bad {
			wait = min(2*a.wait, registryLongest)
		}
	}
	return asked{fact: fact, api: a.api, next: now.Add(wait), wait: wait}
}

// apiFact returns the fact about a registry's referrers API.
func apiFact(host string, has bool) resource.Fact {
	if has {
		return resource.Fact{ID: resource.FactReferrersMissing, Message: "registry " + host + " has the referrers API", About: host}
	}
	return resource.Fact{ID: resource.FactReferrersMissing, Bad: true, Message: "registry " + host + " lacks the referrers API", About: host}
}

func (p *registryProbe) ask(ctx context.Context, host string) resource.Fact {
	ref, err := image.Parse(host + "/landwaiter-checker/probe:none")
	if err != nil {
		return resource.Fact{ID: resource.FactRegistryUnreachable, Message: host + " is no host to ask", About: host}
	}
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	_, err = p.resolve(ctx, verify.Cluster, ref)
	switch {
	case errors.Is(err, ErrNotReady):
		return resource.Fact{}
	case err == nil || verify.IsPermanent(err):
		return resource.Fact{ID: resource.FactRegistryUnreachable, Message: "registry " + host + " answers", About: host}
	}
	return resource.Fact{ID: resource.FactRegistryUnreachable, Bad: true, Message: "registry " + host + " does not answer Landwaiter",
		About: host}
}
