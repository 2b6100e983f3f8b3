package resource

import (
	"errors"
	"strconv"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// refusedBecause is the annotation of a resource that this version's schema refuses, with the
// reason. No object of an API server has it: the key is none that an API server accepts.
const refusedBecause = v1beta1.Group + "/refused because"

// Refuse returns an object in the place of one that this version's schema refuses, though the
// cluster stored it. It is broken: it has the identity, the status and the size of the object,
// but no spec, so that nothing that the spec names is read. Only a Tenant keeps its spec, which
// says what namespaces the Tenant denies, and a ClusterStore its registries and proxy: no Store
// of a namespace may go around the proxy.
func Refuse(object v1beta1.Object, why error) v1beta1.Object {
	made, _ := object.DeepCopyObject().(v1beta1.Object)
	annotations := map[string]string{refusedBecause: why.Error()}
	switch made := made.(type) {
	case *v1beta1.Tenant:
	case *v1beta1.ClusterStore:
		made.Spec = v1beta1.StoreSpec{Registries: made.Spec.Registries, Proxy: made.Spec.Proxy}
	default:
		annotations[withheldBytes] = strconv.Itoa(Size(object))
		field(made, "Spec").SetZero()
	}
	made.SetAnnotations(annotations)
	return made
}

// refused returns why the schema refuses a resource, nil if it does not.
func refused(object v1beta1.Object) error {
	why, noted := object.GetAnnotations()[refusedBecause]
	if !noted {
		return nil
	}
	return Reasoned(policy.ReasonInvalid, errors.New(why))
}
