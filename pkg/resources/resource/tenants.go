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

// Tenants knows which Tenant holds each namespace. A listed namespace (the home namespace is listed)
// beats a prefix; among equal claims the Tenant in the namespace's label wins, then the oldest, then
// the first by name. A restore changes ages, but not labels.
type Tenants struct {
	all map[string]*v1beta1.Tenant
	// listed has the Tenants that list each namespace, the oldest first.
	listed   map[string][]*v1beta1.Tenant
	prefixes map[string]*v1beta1.Tenant
	labels   Labels
	// beginnings has, for each beginning of a prefix that ends with a dash, the oldest Tenant
	// with such a prefix.
	beginnings map[string]*v1beta1.Tenant
	// overlaps has, for each Tenant whose prefix does not count, the Tenant with an overlapping
	// prefix.
	overlaps map[string]*v1beta1.Tenant
}

// Labels has the values of the label landwaiter.dev/tenant, by namespace.
type Labels map[string]string

// LabelsOf returns the labels of some namespaces.
func LabelsOf(namespaces []corev1.Namespace) Labels {
	labels := Labels{}
	for i := range namespaces {
		if tenant := namespaces[i].Labels[v1beta1.LabelTenant]; tenant != "" {
			labels[namespaces[i].Name] = tenant
		}
	}
	return labels
}

// NewTenants computes the holders. Each name may occur once.
func NewTenants(tenants []*v1beta1.Tenant) *Tenants {
	t := &Tenants{all: map[string]*v1beta1.Tenant{}, listed: map[string][]*v1beta1.Tenant{}, prefixes: map[string]*v1beta1.Tenant{},
		beginnings: map[string]*v1beta1.Tenant{}, overlaps: map[string]*v1beta1.Tenant{}}
	for _, tenant := range slices.SortedFunc(slices.Values(tenants), olderFirst) {
		t.all[tenant.Name] = tenant
		for _, namespace := range listedBy(tenant) {
			if !slices.Contains(t.listed[namespace], tenant) {
				t.listed[namespace] = append(t.listed[namespace], tenant)
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

// Labelled returns the same Tenants with the labels of namespaces.
func (t *Tenants) Labelled(labels Labels) *Tenants {
	labelled := *t
	labelled.labels = labels
	return &labelled
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

// overlapping returns the oldest Tenant whose prefix begins with the given one, or vice
// versa. Its cost does not depend on the number of Tenants.
func (t *Tenants) overlapping(prefix string) *v1beta1.Tenant {
	for beginning := range beginningsOf(prefix) {
		if tenant := t.prefixes[beginning]; tenant != nil {
			return tenant
		}
	}
	return t.beginnings[prefix]
}

// beginningsOf yields the beginnings of text that end with a dash.
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

// Lists reports whether a Tenant names a namespace itself, rather than by its prefix.
func (t *Tenants) Lists(namespace string) bool { return len(t.listed[namespace]) > 0 }

// Holder returns the Tenant that holds a namespace, nil if none does. The namespace need
// not exist.
func (t *Tenants) Holder(namespace string) *v1beta1.Tenant {
	labelled := t.all[t.labels[namespace]]
	if claims := t.listed[namespace]; len(claims) > 0 {
		if slices.Contains(claims, labelled) {
			return labelled
		}
		return claims[0]
	}
	if labelled != nil && covers(labelled.Spec.NamespacePrefix, namespace) {
		return labelled
	}
	for beginning := range beginningsOf(namespace) {
		// Prefixes end with a dash, and none begins with another.
		if tenant := t.prefixes[beginning]; tenant != nil && covers(beginning, namespace) {
			return tenant
		}
	}
	return nil
}

// Certain reports whether t alone determines who holds a namespace and the holder's home namespace, whatever other
// Tenants exist: the labels name the holder, and no claim of another Tenant could be stronger, or the holder's status
// says so.
func (t *Tenants) Certain(namespace string) bool {
	holder := t.Holder(namespace)
	if holder == nil {
		return false
	}
	sure := func(name string) bool {
		return t.labels[name] == holder.Name &&
			(slices.Contains(listedBy(holder), name) || slices.ContainsFunc(holder.Status.Namespaces, func(n v1beta1.TenantNamespace) bool {
				return n.Name == name && n.State == v1beta1.NamespaceActive
			}))
	}
	return sure(namespace) && sure(holder.Spec.HomeNamespace)
}

// covers reports whether a prefix, "" for none, covers a namespace.
func covers(prefix, namespace string) bool {
	return prefix != "" && len(prefix) < len(namespace) && strings.HasPrefix(namespace, prefix)
}

// Held says which Tenant holds a namespace, and why. Some Tenant must hold it.
func (t *Tenants) Held(namespace string) string {
	holder := t.Holder(namespace)
	why := "is older"
	if t.labels[namespace] == holder.Name {
		why = "its label " + v1beta1.LabelTenant + " names"
	}
	return fmt.Sprintf("namespace %s belongs to Tenant %s, which %s", namespace, holder.Name, why)
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
		if !listed && t.Holder(namespace.Name) != tenant {
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

// Conflict describes what another Tenant holds of a Tenant's claims, "" if nothing.
func (t *Tenants) Conflict(tenant *v1beta1.Tenant) string {
	var taken []string
	if other := t.overlaps[tenant.Name]; other != nil {
		taken = append(taken,
			fmt.Sprintf("spec.namespacePrefix: %s overlaps with %s of Tenant %s, so it only counts for namespaces whose label names this Tenant: "+
				"neither may begin with the other", tenant.Spec.NamespacePrefix, other.Spec.NamespacePrefix, other.Name))
	}
	for _, namespace := range listedBy(tenant) {
		if holder := t.Holder(namespace); holder != nil && holder.Name != tenant.Name {
			taken = append(taken, t.Held(namespace))
		}
	}
	return strings.Join(taken, "; ")
}
