package resolve

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
// without duplicates, and the pull secrets of those ServiceAccounts that are in o. Namespaced
// resources reference their own namespace only, so reading these objects never exposes one
// namespace's data to another.
func References(o resource.Objects) map[verify.Namespace][]policy.ObjectRef {
	all, pulls := map[verify.Namespace][]policy.ObjectRef{}, o.PullSecrets()
	for _, object := range o.Resources {
		owner := verify.Namespace(object.GetNamespace())
		for _, f := range resource.FieldsOf(object) {
			all[owner] = append(all[owner], f.Named(o.ReferenceNamespace(string(owner)), pulls)...)
		}
	}
	for owner, list := range all {
		slices.SortFunc(list, func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
		if all[owner] = slices.Compact(list); len(list) == 0 {
			delete(all, owner)
		}
	}
	return all
}

// BreakGlassAnnotations returns the annotations of a Namespace that compiling reads.
func BreakGlassAnnotations() []string {
	return []string{v1beta1.AnnotationBreakGlassFrom, v1beta1.AnnotationBreakGlassUntil, v1beta1.AnnotationBreakGlassReason, v1beta1.AnnotationBreakGlassOverrideMandatory}
}

// breakGlassOf returns the annotations of a Namespace that matter, nil if there are none.
func breakGlassOf(all map[string]string) map[string]string {
	var found map[string]string
	for _, key := range BreakGlassAnnotations() {
		if value, ok := all[key]; ok {
			if found == nil {
				found = map[string]string{}
			}
			found[key] = value
		}
	}
	return found
}
