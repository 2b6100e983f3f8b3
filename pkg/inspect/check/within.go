package check

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// ResourceIDs returns the IDs of the findings that only need resources of landwaiter.dev. Each of them is
// about one resource and its namespace, so they can be found in a part of the cluster, too.
func ResourceIDs() (ids []string) {
	for _, c := range checks() {
		if c.onlyResources() {
			ids = append(ids, c.ids...)
		}
	}
	return ids
}

func (c check) onlyResources() bool { return slices.Equal(c.needs, []Source{SourceResources}) }

// resources reads the resources of landwaiter.dev: those of the whole cluster or, of each kind that the
// caller cannot list there, those of [Options.Within] and of its home namespace.
func (r *reader) resources() {
	var within, some, none []string
	for _, kind := range v1beta1.Kinds() {
		page, ok := kind.NewList().(client.ObjectList)
		if !ok {
			continue
		}
		plural := kind.Plural + "." + v1beta1.Group
		list := func(namespace string) bool {
			return r.list(SourceResources, plural, namespace, page, func(o any) {
				if object, ok := o.(v1beta1.Object); ok {
					r.into.Resources = append(r.into.Resources, object)
				}
			})
		}
		if list("") {
			continue
		}
		if kind.Namespaced && r.into.Within != "" {
			if within == nil {
				within = r.within()
			}
			if !slices.ContainsFunc(within, func(namespace string) bool { return !list(namespace) }) {
				some = append(some, plural)
				continue
			}
		}
		none = append(none, plural)
	}
	if len(some) == 0 {
		return // the reason is known
	}
	why := "you can list " + strings.Join(some, ", ") + " only in " + strings.Join(within, " and ")
	if len(none) > 0 {
		why += ", and cannot list " + strings.Join(none, ", ")
	}
	r.into.Unread[SourceResources] = Unread{Missing: "list " + strings.Join(append(some, none...), ", "), Why: why}
}

// within returns [Options.Within] and the home namespace of its Tenant, if the caller can read both.
func (r *reader) within() []string {
	namespaces := []string{r.into.Within}
	var namespace corev1.Namespace
	if r.client.Get(r.ctx, client.ObjectKey{Name: r.into.Within}, &namespace) != nil {
		return namespaces
	}
	var tenant v1beta1.Tenant
	name := namespace.Labels[v1beta1.LabelTenant]
	if name == "" || r.client.Get(r.ctx, client.ObjectKey{Name: name}, &tenant) != nil {
		return namespaces
	}
	if home := tenant.Spec.HomeNamespace; home != "" && home != r.into.Within {
		namespaces = append(namespaces, home)
	}
	return namespaces
}
