package compile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

const kindLimits = clusterPrefix + "Limits"

// limits returns what each namespace may take by the cluster's ClusterLimits, of
// which the first by name that lists a namespace applies to it. One that cannot be
// used leaves its namespaces with what every namespace may take: limits say who
// waits, never what is allowed.
func (c *compiler) limits(resources []entry[v1alpha1.ClusterLimitsSpec]) map[verify.Namespace]verify.Limits {
	found, by := map[verify.Namespace]verify.Limits{}, map[verify.Namespace]policy.ObjectRef{}
	for _, r := range resources {
		limits, err := compileLimits(r)
		if err != nil {
			c.problem(r.source, resource.Reasoned(resource.ReasonOf(err), fmt.Errorf("%w; its namespaces have the limits of every namespace", err)))
			continue
		}
		var taken []string
		for _, name := range r.spec.Namespaces {
			namespace := verify.Namespace(name)
			if first, ok := by[namespace]; ok && first != r.source {
				taken = append(taken, fmt.Sprintf("namespace %s has those of %s", namespace, first))
				continue
			}
			found[namespace], by[namespace] = limits, r.source
		}
		if len(taken) > 0 {
			c.problem(r.source, fmt.Errorf("spec.namespaces lists what another object lists too: %s; the first by name applies, and this one to its other namespaces", strings.Join(taken, ", ")))
		}
	}
	return found
}

func compileLimits(r entry[v1alpha1.ClusterLimitsSpec]) (verify.Limits, error) {
	spec := r.spec
	switch {
	case r.broken != nil:
		return verify.Limits{}, r.broken
	case len(spec.Namespaces) == 0:
		return verify.Limits{}, errors.New("spec.namespaces is empty, so the limits would be for no namespace")
	case spec.ImagesInWork != 0 && spec.ImagesInWork < verify.MinInFlight:
		return verify.Limits{}, fmt.Errorf("spec.imagesInWork is %d, the least is %d: one request has so many in work", spec.ImagesInWork, verify.MinInFlight)
	case spec.RegistryRequestsPerSecond < 0, spec.CachePercent < 0:
		return verify.Limits{}, errors.New("spec has a limit below 1; leave it out for the default")
	case spec.CachePercent > 100:
		return verify.Limits{}, fmt.Errorf("spec.cachePercent is %d, the most is 100", spec.CachePercent)
	case spec.ImagesInWork == 0 && spec.RegistryRequestsPerSecond == 0 && spec.CachePercent == 0:
		return verify.Limits{}, errors.New("spec sets none of imagesInWork, registryRequestsPerSecond and cachePercent")
	}
	for _, name := range spec.Namespaces {
		if _, err := verify.ParseNamespace(name); err != nil {
			return verify.Limits{}, fmt.Errorf("spec.namespaces: %w", err)
		}
	}
	return verify.Limits{InFlight: int(spec.ImagesInWork), RegistryPerSecond: int(spec.RegistryRequestsPerSecond), CachePercent: int(spec.CachePercent)}, nil
}
