package compile

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// References returns the Secrets and ConfigMaps that resources reference, by the
// namespace of the resources ([verify.Cluster] for cluster resources), sorted and
// without duplicates. Namespaced resources reference their own namespace only, so
// reading these objects never exposes one namespace's data to another.
func References(o resource.Objects) map[verify.Namespace][]policy.ObjectRef {
	all := map[verify.Namespace][]policy.ObjectRef{}
	for namespace, l := range groupByLevel(o) {
		var found references
		for _, t := range l.trustStores {
			found.trustSource(t.spec.Source)
			if access := t.spec.AWSSigner; access != nil {
				found.secret(access.SecretRef)
			}
		}
		for _, s := range l.stores {
			for _, secret := range s.spec.ImagePullSecrets {
				found.secret(&secret)
			}
			if identity := s.spec.Identity; identity != nil {
				found.secret(identity.SecretRef)
			}
			found.caBundle(s.spec.CABundle)
		}
		if len(found) > 0 {
			slices.SortFunc(found, func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
			all[namespace] = slices.Compact(found)
		}
	}
	return all
}

// references collects the references of one level's resources.
type references []policy.ObjectRef

func (r *references) trustSource(s v1alpha1.ClusterTrustSource) {
	r.key(kindSecret, s.SecretKeyRef)
	r.key(kindConfigMap, s.ConfigMapKeyRef)
	if s.KMS != nil {
		r.secret(s.KMS.SecretRef)
	}
	if s.Vault != nil {
		r.key(kindSecret, s.Vault.TokenSecretKeyRef)
		r.caBundle(s.Vault.CABundle)
	}
	if s.TUF != nil {
		r.caBundle(s.TUF.CABundle)
	}
}

func (r *references) caBundle(bundle *v1alpha1.ClusterCABundle) {
	if bundle != nil {
		r.key(kindSecret, bundle.SecretKeyRef)
		r.key(kindConfigMap, bundle.ConfigMapKeyRef)
	}
}

func (r *references) secret(ref *v1alpha1.ClusterSecretRef) {
	if ref != nil {
		r.add(kindSecret, ref.Namespace, ref.Name)
	}
}

func (r *references) key(kind string, ref *v1alpha1.ClusterKeyRef) {
	if ref != nil {
		r.add(kind, ref.Namespace, ref.Name)
	}
}

func (r *references) add(kind, namespace, name string) {
	if source, err := locate(kind, namespace, name); err == nil {
		*r = append(*r, source)
	}
}
