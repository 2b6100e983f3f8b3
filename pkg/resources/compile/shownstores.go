package compile

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// stores shows what ClusterStores say about the visible hosts, unless it names other hosts
// or Secrets, and withholds the rest.
func (s *showing) stores(visible []string) {
	specs := s.cluster.objects.stores // in the order of what they are compiled to
	known := slices.DeleteFunc(visible, func(host string) bool {
		for i, e := range specs {
			if compiled := s.cluster.stores[i]; compiled.takesAll() || compiled.touches(host) ||
				slices.Contains(compiled.Registries, host) && (compiled.Broken != nil || !plain(e.spec)) {
				return true
			}
		}
		return false
	})
	for i, e := range specs {
		hosts := slices.DeleteFunc(slices.Clone(s.cluster.stores[i].Registries), func(host string) bool { return !slices.Contains(known, host) })
		if len(hosts) == 0 {
			continue
		}
		made := &v1beta1.ClusterStore{}
		made.Name = e.source.Name
		made.Spec.Registries, made.Spec.InsecurePlainHTTP, made.Spec.CABundle, made.Spec.AdditionalCABundles = hosts, e.spec.InsecurePlainHTTP, e.spec.CABundle, e.spec.AdditionalCABundles
		s.shown.Resources = append(s.shown.Resources, made)
	}
	if len(specs) > 0 {
		s.withhold(v1beta1.KindClusterStore, resource.Known{Hosts: known})
	}
}

// trustStores shows the ClusterTrustStores that ClusterVerifiers which apply, or Verifiers
// of the Tenant, name. A namespace may name others tomorrow, so the kind is withheld.
func (s *showing) trustStores(verifiers []entry[v1beta1.VerifierSpec]) {
	named := map[string]bool{}
	name := func(owner verify.Namespace, all []entry[v1beta1.VerifierSpec]) {
		for _, e := range all {
			for _, source := range trustStoresOf(owner, e.spec) {
				if source.Namespace == "" {
					named[source.Name] = true
				}
			}
		}
	}
	name(verify.Cluster, verifiers)
	for _, l := range s.chain[:s.last()] {
		name(l.objects.namespace, l.objects.verifiers)
	}
	for _, e := range s.cluster.objects.trustStores {
		if !named[e.source.Name] {
			continue
		}
		text, ok := s.cluster.trustStores[e.source.Name].public(e.spec)
		if !ok {
			continue
		}
		made := &v1beta1.ClusterTrustStore{}
		made.Name = e.source.Name
		made.Spec.Type, made.Spec.Hash, made.Spec.Source.Inline = e.spec.Type, e.spec.Hash, text
		s.shown.Resources = append(s.shown.Resources, made)
	}
	s.withhold(v1beta1.KindClusterTrustStore, resource.Known{})
}
