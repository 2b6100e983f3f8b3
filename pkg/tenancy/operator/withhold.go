package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// failed remembers what a Tenant is to have before its people and its account get permissions.
func (r *Report) failed(object client.Object) {
	if r.unrestricted == nil {
		r.unrestricted = map[string]policy.ObjectRef{}
	}
	switch object.GetObjectKind().GroupVersionKind().Kind {
	case kindNamespace:
		r.unrestricted[object.GetName()] = refOf(object)
	case kindNetworkPolicy, kindResourceQuota:
		r.unrestricted[object.GetNamespace()] = refOf(object)
	case onboard.KindRegistries:
		r.unrestricted[""] = refOf(object) // of all namespaces
	}
}

// withholds reports whether an object has to wait, and says so of a binding. A namespace
// that could not be made or labelled gets nothing at all; one without another restriction
// gets no new permissions. Bindings that exist are still applied, because applying is also how
// people lose their permissions.
func (r *Report) withholds(object client.Object, existing *inventory) bool {
	missing, found := r.unrestricted[object.GetNamespace()]
	if !found {
		missing, found = r.unrestricted[""]
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	binds := kind == kindRoleBinding || kind == kindClusterRoleBinding
	switch {
	case !found:
		return false
	case missing.Kind == kindNamespace && object.GetNamespace() != "":
		return true
	case !binds || existing.version(object) != "":
		return false
	}
	r.problem(policy.ReasonUnfinished, refOf(object), "%s is not made before %s is there", refOf(object), missing)
	return true
}
