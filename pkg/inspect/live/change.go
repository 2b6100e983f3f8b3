package live

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Change is what a preview adds to a cluster, replaces in it and removes from it.
type Change struct {
	// Objects are as the cluster would have them: an object of the same kind, namespace and
	// name is replaced.
	Objects resource.Objects
	Delete  []policy.ObjectRef
	// At is when the objects would be made: the older one of two Tenants counts.
	At time.Time
	// SendSecrets lets the change send Secrets of the cluster to servers that do not get
	// them now.
	SendSecrets bool
}

// ClusterScoped reports whether the change has, or removes, cluster-scoped kinds of
// landwaiter.dev, which may count in every namespace.
func (c Change) ClusterScoped() bool {
	scoped := func(source policy.ObjectRef) bool {
		kind, ours := v1beta1.KindNamed(source.Kind)
		return ours && !kind.Namespaced
	}
	return slices.ContainsFunc(c.Delete, scoped) ||
		slices.ContainsFunc(c.Objects.Resources, func(object v1beta1.Object) bool { return scoped(resource.RefOf(object)) }) ||
		slices.ContainsFunc(c.Objects.Broken, func(b resource.Broken) bool { return scoped(b.Source) })
}

// applied returns o with the change. Neither is modified.
func (c Change) applied(o resource.Objects) resource.Objects {
	gone := map[policy.ObjectRef]bool{}
	for _, source := range c.Delete {
		gone[source] = true
	}
	next := o
	next.Resources = c.resources(o.Resources, gone)
	next.Namespaces = c.namespaces(o.Namespaces)
	next.Secrets = replaced(o.Secrets, c.Objects.Secrets, gone, func(s corev1.Secret) policy.ObjectRef { return named("Secret", &s) })
	next.ConfigMaps = replaced(o.ConfigMaps, c.Objects.ConfigMaps, gone, func(m corev1.ConfigMap) policy.ObjectRef { return named("ConfigMap", &m) })
	next.ServiceAccounts = replaced(o.ServiceAccounts, c.Objects.ServiceAccounts, gone, func(a corev1.ServiceAccount) policy.ObjectRef { return named("ServiceAccount", &a) })
	next.Broken, next.Hidden = slices.Clone(o.Broken), slices.Clone(o.Hidden)
	return next
}

// named returns the reference to an object of a kind.
func named(kind string, object metav1.Object) policy.ObjectRef {
	return policy.ObjectRef{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// resources keeps the age of what is replaced.
func (c Change) resources(old []v1beta1.Object, gone map[policy.ObjectRef]bool) []v1beta1.Object {
	were := map[policy.ObjectRef]v1beta1.Object{}
	for _, object := range old {
		were[resource.RefOf(object)] = object
	}
	made := make([]v1beta1.Object, len(c.Objects.Resources))
	for i, object := range c.Objects.Resources {
		made[i] = object.DeepCopyObject().(v1beta1.Object) //nolint:forcetypeassert // a copy has the type
		made[i].SetCreationTimestamp(metav1.NewTime(c.At))
		if was, ok := were[resource.RefOf(object)]; ok {
			made[i].SetCreationTimestamp(was.GetCreationTimestamp())
		}
	}
	return replaced(old, made, gone, resource.RefOf)
}

// namespaces merges labels and annotations, as applying does.
func (c Change) namespaces(old []corev1.Namespace) []corev1.Namespace {
	next := slices.Clone(old)
	for i := range c.Objects.Namespaces {
		made := c.Objects.Namespaces[i].DeepCopy()
		at := slices.IndexFunc(next, func(n corev1.Namespace) bool { return n.Name == made.Name })
		if at < 0 {
			next = append(next, *made)
			continue
		}
		merged := next[at].DeepCopy()
		merged.Labels, merged.Annotations = mergedMaps(merged.Labels, made.Labels), mergedMaps(merged.Annotations, made.Annotations)
		next[at] = *merged
	}
	return next
}

func mergedMaps(old, made map[string]string) map[string]string {
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, made)
	return merged
}

// replaced returns old without what is gone or made again, and made.
func replaced[T any](old, made []T, gone map[policy.ObjectRef]bool, ref func(T) policy.ObjectRef) []T {
	without := maps.Clone(gone)
	for _, object := range made {
		without[ref(object)] = true
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(object T) bool { return without[ref(object)] })
	return append(kept, made...)
}
