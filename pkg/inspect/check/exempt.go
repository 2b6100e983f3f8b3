package check

import (
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// soften turns a finding about a resource into a note if the resource is in a namespace that is exempt
// from Gatekeeper, where Landwaiter decides nothing. The resources of a home namespace also apply in
// other namespaces.
func (v *view) soften(f *resource.Finding) {
	kind, ours := v1beta1.KindNamed(f.Object.Kind)
	if !ours || !kind.Namespaced || f.Severity == resource.Note {
		return
	}
	if slices.ContainsFunc(v.Resources, func(o v1beta1.Object) bool {
		t, ok := o.(*v1beta1.Tenant)
		return ok && t.Spec.HomeNamespace == f.Object.Namespace
	}) {
		return
	}
	for _, n := range v.Namespaces {
		if n.Name == f.Object.Namespace && constraint.Exempt(v.Constraints, n.Name, withName(n.Labels, n.Name)) {
			f.Severity = resource.Note
			f.Why += "; but its namespace is exempt from Gatekeeper, so nothing is denied there"
			return
		}
	}
}
