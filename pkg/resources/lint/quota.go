package lint

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// unknowable reports whether a problem is that a ClusterQuota applies to nothing, in files without objects of
// the kinds that it names: the cluster may have them all.
func (c *checker) unknowable(p resource.Problem, resources []v1beta1.Object) bool {
	if p.Reason != policy.ReasonAppliesNowhere || p.Source.Kind != v1beta1.KindClusterQuota {
		return false
	}
	return !slices.ContainsFunc(resources, func(o v1beta1.Object) bool {
		quota, ok := o.(*v1beta1.ClusterQuota)
		return ok && quota.Name == p.Source.Name &&
			(len(quota.Spec.Namespaces) > 0 && c.has("Namespace", "") || len(quota.Spec.Tenants) > 0 && c.has(v1beta1.KindTenant, ""))
	})
}
