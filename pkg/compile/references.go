package compile

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// References returns the Secrets and ConfigMaps that resources are made of, by
// the namespace of the resources ([verify.Cluster] for cluster resources), in
// order and each once. A reference that its resource may not make, such as one
// to another namespace, is left out: who reads what is returned here reads
// nothing on behalf of a tenant that the tenant could not read.
func References(o resource.Objects) map[verify.Namespace][]policy.ObjectRef {
	all := map[verify.Namespace][]policy.ObjectRef{}
	for namespace, d := range levels(o) {
		found := references{owner: namespace}
		for _, t := range d.trustStores {
			found.key(kindSecret, t.spec.Source.SecretRef)
			found.key(kindConfigMap, t.spec.Source.ConfigMapRef)
			if vault := t.spec.Source.Vault; vault != nil {
				found.key(kindSecret, &vault.Token)
			}
			if kms := t.spec.Source.KMS; kms != nil && kms.SecretRef != nil {
				found.add(kindSecret, kms.SecretRef.Namespace, kms.SecretRef.Name)
			}
		}
		for _, s := range d.stores {
			for _, secret := range s.spec.ImagePullSecrets {
				found.add(kindSecret, secret.Namespace, secret.Name)
			}
			if identity := s.spec.Identity; identity != nil && identity.SecretRef != nil {
				found.add(kindSecret, identity.SecretRef.Namespace, identity.SecretRef.Name)
			}
			if bundle := s.spec.CABundle; bundle != nil {
				found.key(kindSecret, bundle.SecretRef)
				found.key(kindConfigMap, bundle.ConfigMapRef)
			}
		}
		if len(found.sources) > 0 {
			slices.SortFunc(found.sources, func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
			all[namespace] = slices.Compact(found.sources)
		}
	}
	return all
}

// references collects what the resources of one level refer to.
type references struct {
	owner   verify.Namespace
	sources []policy.ObjectRef
}

func (r *references) key(kind string, ref *v1alpha1.ObjectKeyRef) {
	if ref != nil {
		r.add(kind, ref.Namespace, ref.Name)
	}
}

func (r *references) add(kind, namespace, name string) {
	if source, err := locate(r.owner, kind, namespace, name); err == nil {
		r.sources = append(r.sources, source)
	}
}
