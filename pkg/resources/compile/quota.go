package compile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// AccountsOf returns the accounts that a quota lists.
func AccountsOf(spec v1beta1.ClusterQuotaSpec) []verify.Account {
	return slices.Concat(MapSlice(spec.Namespaces, func(name string) verify.Account { return verify.Namespace(name).Account() }),
		MapSlice(spec.Tenants, verify.TenantAccount))
}

// NewQuota compiles a ClusterQuota.
func NewQuota(r Entry[v1beta1.ClusterQuotaSpec]) (verify.Limits, error) {
	spec := r.Spec
	switch {
	case r.Broken != nil:
		return verify.Limits{}, r.Broken
	case len(spec.Namespaces) == 0 && len(spec.Tenants) == 0:
		return verify.Limits{}, errors.New("spec.namespaces and spec.tenants are empty, so the quota would be for nobody")
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
