package compile

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// AccountsOf returns the accounts that a quota lists.
func AccountsOf(spec v1beta1.ClusterQuotaSpec) []verify.Account {
	return slices.Concat(MapSlice(spec.Namespaces, func(name string) verify.Account { return verify.Namespace(name).Account() }),
		MapSlice(spec.Tenants, verify.TenantAccount))
}

// LimitsOf returns the limits in a quota, zero where the default applies.
func LimitsOf(spec v1beta1.ClusterQuotaSpec) verify.Limits {
	return verify.Limits{InFlight: int(spec.MaxInFlight), RegistryPerSecond: int(spec.RegistryRequestsPerSecond),
		CachePercent: int(spec.CacheSharePercent)}
}
