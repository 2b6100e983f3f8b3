package resource

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Tenants says which Tenant holds each namespace. A listed namespace (the home namespace is listed)
// beats a prefix; among equal claims the oldest Tenant wins, then the first by name.
type Tenants struct {
	all      map[string]*v1beta1.Tenant
	listed   map[string]*v1beta1.Tenant
	prefixes map[string]*v1beta1.Tenant
	// beginnings holds, for each beginning of a prefix that ends with a dash, the oldest
	// Tenant with such a prefix.
	beginnings map[string]*v1beta1.Tenant
	// overlaps holds, for each Tenant whose prefix does not count, the Tenant whose
	// prefix overlaps with it.
	overlaps map[string]*v1beta1.Tenant
}

// NewTenants computes who holds what. Each name may occur once.
func NewTenants(tenants []*v1beta1.Tenant) *Tenants {
	t := &Tenants{all: map[string]*v1beta1.Tenant{}, listed: map[string]*v1beta1.Tenant{}, prefixes: map[string]*v1beta1.Tenant{},
		beginnings: map[string]*v1beta1.Tenant{}, overlaps: map[string]*v1beta1.Tenant{}}
	for _, tenant := range slices.SortedFunc(slices.Values(tenants), olderFirst) {
		t.all[tenant.Name] = tenant
		for _, namespace := range listedBy(tenant) {
			if t.listed[namespace] == nil {
				t.listed[namespace] = tenant
			}
		}
		prefix := tenant.Spec.NamespacePrefix
		if prefix == "" {
			continue
		}
		if other := t.overlapping(prefix); other != nil {
			t.overlaps[tenant.Name] = other
		} else {
			t.prefixes[prefix] = tenant
			for beginning := range beginningsOf(prefix) {
				if t.beginnings[beginning] == nil {
					t.beginnings[beginning] = tenant
				}
			}
		}
	}
	return t
}

// TenantsAmong computes who holds what from the Tenants among objects.
func TenantsAmong(objects []v1beta1.Object) *Tenants {
	var tenants []*v1beta1.Tenant
	for _, object := range objects {
		if tenant, ok := object.(*v1beta1.Tenant); ok {
			tenants = append(tenants, tenant)
		}
	}
	return NewTenants(tenants)
}

func olderFirst(x, y *v1beta1.Tenant) int {
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
}

// listedBy returns the namespaces that a Tenant names itself: the home namespace, which an invalid
// Tenant may lack, then the others.
func listedBy(tenant *v1beta1.Tenant) []string {
	others := slices.DeleteFunc(slices.Clone(tenant.Spec.Namespaces), func(n string) bool { return n == tenant.Spec.HomeNamespace })
	if tenant.Spec.HomeNamespace == "" {
		return others
	}
	return append([]string{tenant.Spec.HomeNamespace}, others...)
}

// overlapping returns the oldest Tenant whose prefix begins with the given one, or the
// other way round. It costs the same however many Tenants there are.
func (t *Tenants) overlapping(prefix string) *v1beta1.Tenant {
	for beginning := range beginningsOf(prefix) {
		if tenant := t.prefixes[beginning]; tenant != nil {
			return tenant
		}
	}
	return t.beginnings[prefix]
}

// beginningsOf yields what text begins with up to each of its dashes.
func beginningsOf(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, r := range text {
			if r == '-' && !yield(text[:i+1]) {
				return
			}
		}
	}
}

// Named returns a Tenant by its name, nil if there is none.
func (t *Tenants) Named(name string) *v1beta1.Tenant { return t.all[name] }

// Lists reports whether a Tenant names a namespace itself, and not by its prefix.
func (t *Tenants) Lists(namespace string) bool { return t.listed[namespace] != nil }

// Holder returns the Tenant that holds a namespace, nil if none does. The namespace need
// not exist.
func (t *Tenants) Holder(namespace string) *v1beta1.Tenant {
	if tenant := t.listed[namespace]; tenant != nil {
		return tenant
	}
	for beginning := range beginningsOf(namespace) {
		// Prefixes end with a dash, and none begins with another.
		if tenant := t.prefixes[beginning]; tenant != nil && len(beginning) < len(namespace) {
			return tenant
		}
	}
	return nil
}

// Namespaces returns the namespaces that a Tenant names, and those among existing that its
// prefix covers, with their states: the home namespace first, then by name.
func (t *Tenants) Namespaces(tenant *v1beta1.Tenant, existing []corev1.Namespace) []v1beta1.TenantNamespace {
	states := map[string]v1beta1.NamespaceState{}
	for _, name := range listedBy(tenant) {
		states[name] = v1beta1.NamespaceMissing
	}
	for i := range existing {
		namespace := &existing[i]
		_, listed := states[namespace.Name]
		if !listed && (t.overlaps[tenant.Name] != nil || t.Holder(namespace.Name) != tenant) {
			continue
		}
		states[namespace.Name] = v1beta1.NamespaceActive
		switch {
		case namespace.DeletionTimestamp != nil:
			states[namespace.Name] = v1beta1.NamespaceTerminating
		case namespace.Name == tenant.Spec.HomeNamespace:
			states[namespace.Name] = v1beta1.NamespaceHome
		}
	}
	var found []v1beta1.TenantNamespace
	home := tenant.Spec.HomeNamespace
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(states)), func(n string) bool { return n == home })
	if home != "" {
		names = slices.Insert(names, 0, home)
	}
	for _, name := range names {
		if t.Holder(name) != tenant {
			states[name] = v1beta1.NamespaceConflict
		}
		found = append(found, v1beta1.TenantNamespace{Name: name, State: states[name]})
	}
	return found
}

// ActiveNamespaces returns the names of the namespaces that exist, are not ending and belong to a
// Tenant, the home namespace first, then by name.
func (t *Tenants) ActiveNamespaces(tenant *v1beta1.Tenant, existing []corev1.Namespace) []string {
	var members []string
	for _, n := range t.Namespaces(tenant, existing) {
		if n.State == v1beta1.NamespaceHome || n.State == v1beta1.NamespaceActive {
			members = append(members, n.Name)
		}
	}
	return members
}

// Conflict says what of a Tenant another one has, "" if nothing.
func (t *Tenants) Conflict(tenant *v1beta1.Tenant) string {
	var taken []string
	if other := t.overlaps[tenant.Name]; other != nil {
		taken = append(taken, fmt.Sprintf("spec.namespacePrefix: %s overlaps with %s of Tenant %s, so it does not count: neither may begin with the other", tenant.Spec.NamespacePrefix, other.Spec.NamespacePrefix, other.Name))
	}
	for _, namespace := range listedBy(tenant) {
		if holder := t.Holder(namespace); holder != nil && holder.Name != tenant.Name {
			taken = append(taken, fmt.Sprintf("namespace %s belongs to Tenant %s, which is older", namespace, holder.Name))
		}
	}
	return strings.Join(taken, "; ")
}
