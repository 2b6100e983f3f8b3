package compile

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// References returns the Secrets, ConfigMaps and ServiceAccounts that resources reference,
// by the namespace of the resources ([verify.Cluster] for cluster resources), sorted and
// without duplicates, and the pull secrets of those ServiceAccounts that are in o. Namespaced resources
// reference their own namespace only, so reading these objects never exposes one namespace's
// data to another.
func References(o resource.Objects) map[verify.Namespace][]policy.ObjectRef {
	all, accounts := map[verify.Namespace][]policy.ObjectRef{}, pullSecretsOf(o)
	for namespace, l := range groupByLevel(o) {
		found := references{referenced: accounts.of(namespace)}
		for _, t := range l.trustStores {
			found.trustSource(t.spec.Source)
			if access := t.spec.AWSSigner; access != nil {
				found.secret(access.SecretRef)
			}
		}
		for _, s := range l.stores {
			found.store(s.spec)
		}
		if len(found.list) > 0 {
			slices.SortFunc(found.list, func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
			all[namespace] = slices.Compact(found.list)
		}
	}
	return all
}

// pullSecretsOf returns what decides which objects are referenced: the pull secrets
// of ServiceAccounts.
func pullSecretsOf(o resource.Objects) referenced {
	return newReferenced(resource.Objects{ServiceAccounts: o.ServiceAccounts, ClusterResourceNamespace: o.ClusterResourceNamespace}, nil)
}

// references collects the references of one level's resources.
type references struct {
	referenced referenced
	list       []policy.ObjectRef
}

func (r *references) trustSource(s v1beta1.TrustSource) {
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

func (r *references) store(s v1beta1.StoreSpec) {
	for _, secret := range s.ImagePullSecrets {
		r.secret(&secret)
	}
	if from := s.ImagePullSecretsFrom; from != nil {
		r.add(kindServiceAccount, from.ServiceAccount.Name)
		secrets, _ := r.referenced.pullSecrets(from.ServiceAccount) // compiling reports errors
		for _, secret := range secrets {
			r.secret(&secret)
		}
	}
	if s.Identity != nil {
		r.secret(s.Identity.SecretRef)
	}
	r.caBundle(s.CABundle)
	for _, bundle := range s.AdditionalCABundles {
		r.caBundle(&bundle)
	}
	if s.ClientCertificate != nil {
		r.secret(&s.ClientCertificate.SecretRef)
	}
	if s.Proxy != nil {
		r.secret(s.Proxy.SecretRef)
		r.caBundle(s.Proxy.CABundle)
	}
}

func (r *references) caBundle(bundle *v1beta1.CABundle) {
	if bundle != nil {
		r.key(kindSecret, bundle.SecretKeyRef)
		r.key(kindConfigMap, bundle.ConfigMapKeyRef)
	}
}

func (r *references) secret(ref *v1beta1.Reference) {
	if ref != nil {
		r.add(kindSecret, ref.Name)
	}
}

func (r *references) key(kind string, ref *v1beta1.KeyReference) {
	if ref != nil {
		r.add(kind, ref.Name)
	}
}

func (r *references) add(kind, name string) {
	if source, err := r.referenced.locate(kind, name); err == nil {
		r.list = append(r.list, source)
	}
}
