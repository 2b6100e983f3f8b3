package compile

import (
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// rights returns what the condition Ready says about resources through whose Secrets or
// ConfigMaps others than admins decide what is trusted.
func (l *objects) rights() map[policy.ObjectRef]string {
	said := map[policy.ObjectRef]string{}
	add := func(found []resource.Exposure) {
		for _, f := range found {
			said[f.Resource] += ". Note: " + f.String()
		}
	}
	for _, e := range l.trustStores {
		add(resource.TrustStoreExposures(e.source, e.spec))
	}
	for _, e := range l.stores {
		add(resource.StoreExposures(e.source, e.spec))
	}
	return said
}
