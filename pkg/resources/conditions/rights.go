package conditions

import (
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// rights returns what the condition Ready says about resources through whose Secrets or
// ConfigMaps others than admins decide what is trusted.
func rights(l *resolve.Objects) map[policy.ObjectRef]string {
	said := map[policy.ObjectRef]string{}
	add := func(found []resource.Exposure) {
		for _, f := range found {
			said[f.Resource] += ". Note: " + f.String()
		}
	}
	for _, e := range l.TrustStores {
		add(resource.TrustStoreExposures(e.Source, e.Spec))
	}
	for _, e := range l.Stores {
		add(resource.StoreExposures(e.Source, e.Spec))
	}
	return said
}
