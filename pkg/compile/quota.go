package compile

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// compileQuotas returns the limits of each namespace that a ClusterQuota lists. If
// several list a namespace, the first by name applies. Namespaces of a broken quota
// have the defaults: quotas affect scheduling, never verdicts.
func (l *level) compileQuotas(quotas []entry[v1alpha1.ClusterQuotaSpec]) map[verify.Namespace]verify.Limits {
	found, by := map[verify.Namespace]verify.Limits{}, map[verify.Namespace]policy.ObjectRef{}
	for _, r := range quotas {
		limits, err := compileQuota(r)
		if err != nil {
			l.problem(r.source, resource.Reasoned(resource.ReasonOf(err), fmt.Errorf("%w; its namespaces have the default quota", err)))
			continue
		}
		var taken []string
		for _, name := range r.spec.Namespaces {
			namespace := verify.Namespace(name)
			if first, ok := by[namespace]; ok && first != r.source {
				taken = append(taken, fmt.Sprintf("namespace %s has that of %s", namespace, first))
				continue
			}
			found[namespace], by[namespace] = limits, r.source
		}
		if len(taken) > 0 {
			l.problem(r.source, fmt.Errorf("spec.namespaces lists what another object lists too: %s; the first by name applies, and this one to its other namespaces", joinNames(taken)))
		}
	}
	l.quotaSources = by
	return found
}

func compileQuota(r entry[v1alpha1.ClusterQuotaSpec]) (verify.Limits, error) {
	spec := r.spec
	switch {
	case r.broken != nil:
		return verify.Limits{}, r.broken
	case len(spec.Namespaces) == 0:
		return verify.Limits{}, errors.New("spec.namespaces is empty, so the quota would be for no namespace")
	case spec.MaxInFlight != 0 && spec.MaxInFlight < verify.MinInFlight:
		return verify.Limits{}, fmt.Errorf("spec.maxInFlight is %d, the least is %d: one request can have so many in flight", spec.MaxInFlight, verify.MinInFlight)
	case spec.RegistryRequestsPerSecond < 0, spec.CacheSharePercent < 0:
		return verify.Limits{}, errors.New("spec has a value below 1; leave it out for the default")
	case spec.CacheSharePercent > 100:
		return verify.Limits{}, fmt.Errorf("spec.cacheSharePercent is %d, the most is 100", spec.CacheSharePercent)
	case spec.MaxInFlight == 0 && spec.RegistryRequestsPerSecond == 0 && spec.CacheSharePercent == 0:
		return verify.Limits{}, errors.New("spec sets none of maxInFlight, registryRequestsPerSecond and cacheSharePercent")
	}
	for _, name := range spec.Namespaces {
		if _, err := verify.ParseNamespace(name); err != nil {
			return verify.Limits{}, fmt.Errorf("spec.namespaces: %w", err)
		}
	}
	return verify.Limits{InFlight: int(spec.MaxInFlight), RegistryPerSecond: int(spec.RegistryRequestsPerSecond), CachePercent: int(spec.CacheSharePercent)}, nil
}
