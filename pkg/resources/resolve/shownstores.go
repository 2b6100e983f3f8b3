package resolve

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// stores shows what ClusterStores say about the visible hosts, unless it names other hosts
// or Secrets, and withholds the rest.
func (s *showing) stores(visible []string) {
	specs := s.Cluster.Objects.Stores // in the order of what they are compiled to
	known := slices.DeleteFunc(visible, func(host string) bool {
		for i, e := range specs {
			if compiled := s.Cluster.stores[i]; compiled.TakesAll() || compiled.Touches(host) ||
				slices.Contains(compiled.Registries, host) && (compiled.Broken != nil || !compile.Plain(e.Spec)) {
				return true
			}
		}
		return false
	})
	for i, e := range specs {
		hosts := slices.DeleteFunc(slices.Clone(s.Cluster.stores[i].Registries), func(host string) bool { return !slices.Contains(known, host) })
		if len(hosts) == 0 {
			continue
		}
		made := &v1beta1.ClusterStore{}
		made.Name = e.Source.Name
		made.Spec.Registries, made.Spec.InsecurePlainHTTP, made.Spec.CABundle, made.Spec.AdditionalCABundles = hosts, e.Spec.InsecurePlainHTTP, e.Spec.CABundle, e.Spec.AdditionalCABundles
		s.shown.Resources = append(s.shown.Resources, made)
	}
	if len(specs) > 0 {
		s.withhold(v1beta1.KindClusterStore, resource.Known{Hosts: known})
	}
}

// trustStores shows the ClusterTrustStores that ClusterVerifiers which apply, or Verifiers
// of the Tenant, name. A namespace may name others tomorrow, so the kind is withheld.
func (s *showing) trustStores(verifiers []compile.Entry[v1beta1.VerifierSpec]) {
	named := map[string]bool{}
	name := func(owner verify.Namespace, all []compile.Entry[v1beta1.VerifierSpec]) {
		for _, e := range all {
			for _, source := range compile.TrustStoresOf(owner, e.Spec) {
				if source.Namespace == "" {
					named[source.Name] = true
				}
			}
		}
	}
	name(verify.Cluster, verifiers)
	for _, l := range s.Chain[:s.last()] {
		name(l.Objects.Namespace, l.Objects.Verifiers)
	}
	for _, e := range s.Cluster.Objects.TrustStores {
		if !named[e.Source.Name] {
			continue
		}
		text, ok := s.Cluster.TrustStores[e.Source.Name].Public(e.Spec)
		if !ok {
			continue
		}
		made := &v1beta1.ClusterTrustStore{}
		made.Name = e.Source.Name
		made.Spec.Type, made.Spec.Hash, made.Spec.Source.Inline = e.Spec.Type, e.Spec.Hash, text
		s.shown.Resources = append(s.shown.Resources, made)
	}
	s.withhold(v1beta1.KindClusterTrustStore, resource.Known{})
}
