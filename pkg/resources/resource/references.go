package resource

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// MaxPullSecrets is how many pull secrets one ServiceAccount may have, as a Store.
const MaxPullSecrets = 8

// ReferenceNamespace returns the namespace of the objects that resources of a namespace
// reference, which is this one, or that resources of the cluster reference if owner is empty.
func (o *Objects) ReferenceNamespace(owner string) string {
	if owner == "" {
		return o.ForCluster()
	}
	return owner
}

// Locate returns the object that a reference in a namespace names. No schema says which names
// an API server accepts.
func Locate(namespace, kind, name string) (policy.ObjectRef, error) {
	switch {
	case name == "":
		return policy.ObjectRef{}, fmt.Errorf("the reference to a %s has no name", kind)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return policy.ObjectRef{}, fmt.Errorf("the reference to a %s names %q, which cannot be the name of one", kind, name)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return policy.ObjectRef{}, fmt.Errorf("the reference to %s %s is to namespace %q, which cannot be the name of one", kind, name, namespace)
	}
	return policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}, nil
}

// Named returns the objects that f names in a namespace, and the pull secrets of an account
// that it names. It leaves out names that cannot be those of objects.
func (f Field) Named(namespace string, pulls map[policy.ObjectRef][]string) []policy.ObjectRef {
	if f.Kind != KindSecret && f.Kind != KindConfigMap && f.Use != PullAccount { // tokens are no objects
		return nil
	}
	source, err := Locate(namespace, f.Kind, f.Name)
	if err != nil {
		return nil // compiling reports it
	}
	found := []policy.ObjectRef{source}
	if names := pulls[source]; len(names) <= MaxPullSecrets {
		for _, name := range names {
			if secret, err := Locate(namespace, KindSecret, name); err == nil {
				found = append(found, secret)
			}
		}
	}
	return found
}

// PullSecrets returns the names of the pull secrets of each ServiceAccount.
func (o *Objects) PullSecrets() map[policy.ObjectRef][]string {
	pulls := map[policy.ObjectRef][]string{}
	for _, account := range o.ServiceAccounts {
		source := policy.ObjectRef{Kind: KindServiceAccount, Namespace: account.Namespace, Name: account.Name}
		pulls[source] = nil // the last of several counts
		for _, secret := range account.ImagePullSecrets {
			pulls[source] = append(pulls[source], secret.Name)
		}
	}
	return pulls
}
