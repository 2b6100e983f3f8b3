package live

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Change is the set of objects that a preview adds, replaces and removes.
type Change struct {
	// Objects replace objects of the same kind, namespace and name.
	Objects resource.Objects
	Delete  []policy.ObjectRef
	// At is the creation time of the objects: the older one of two Tenants counts.
	At time.Time
	// SendSecrets lets the change send Secrets of the cluster to servers that do not get
	// them now.
	SendSecrets bool
}

// ClusterScoped reports whether the change has, or removes, cluster-scoped kinds of
// landwaiter.dev, which may affect every namespace.
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
	next.ConfigMaps = replaced(o.ConfigMaps, c.Objects.ConfigMaps, gone, func(m corev1.ConfigMap) policy.ObjectRef {
		return named("ConfigMap", &m)
	})
	next.ServiceAccounts = replaced(o.ServiceAccounts, c.Objects.ServiceAccounts, gone, func(a corev1.ServiceAccount) policy.ObjectRef {
		return named("ServiceAccount", &a)
	})
	next.Broken, next.Unreadable = slices.Clone(o.Broken), slices.Clone(o.Unreadable)
	return next
}

// named returns the reference to an object of a kind.
func named(kind string, object metav1.Object) policy.ObjectRef {
	return policy.ObjectRef{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// resources keeps the age of replaced objects.
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
		merged.Labels, merged.Annotations = labels.Merge(merged.Labels, made.Labels), labels.Merge(merged.Annotations, made.Annotations)
		next[at] = *merged
	}
	return next
}

// replaced returns old without removed and replaced objects, and with made.
func replaced[T any](old, made []T, gone map[policy.ObjectRef]bool, ref func(T) policy.ObjectRef) []T {
	without := maps.Clone(gone)
	for _, object := range made {
		without[ref(object)] = true
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(object T) bool { return without[ref(object)] })
	return append(kept, made...)
}

// ParseDeletion reads KIND/NAME or KIND/NAMESPACE/NAME of an object that a preview removes. A
// kind is written as in a manifest or, as kubectl accepts it, in lower case or the plural.
func ParseDeletion(text string, namespace verify.Namespace) (policy.ObjectRef, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[len(parts)-1] == "" {
		return policy.ObjectRef{}, fmt.Errorf("%.200q is not KIND/NAME or KIND/NAMESPACE/NAME", text)
	}
	ref := policy.ObjectRef{Namespace: string(namespace), Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		ref.Namespace = parts[1]
	}
	namespaced, known := true, false
	for _, name := range []string{"Secret", "ConfigMap", "ServiceAccount"} {
		if same(parts[0], name, strings.ToLower(name)+"s") {
			ref.Kind, known = name, true
		}
	}
	for _, kind := range v1beta1.Kinds() {
		if same(parts[0], kind.Name, kind.Plural) {
			ref.Kind, namespaced, known = kind.Name, kind.Namespaced, true
		}
	}
	switch {
	case !known:
		return policy.ObjectRef{}, fmt.Errorf("%.200q: %.80q is not a kind that verdicts depend on", text, parts[0])
	case !namespaced && len(parts) == 3:
		return policy.ObjectRef{}, fmt.Errorf("%.200q: a %s is cluster-scoped; write %s/%s", text, ref.Kind, ref.Kind, ref.Name)
	case !namespaced:
		ref.Namespace = ""
	case ref.Namespace == "":
		return policy.ObjectRef{}, fmt.Errorf("%.200q: a %s is namespaced; write %s/NAMESPACE/%s", text, ref.Kind, ref.Kind, ref.Name)
	}
	return ref, nil
}

func same(text, kind, plural string) bool {
	text, _, _ = strings.Cut(text, ".") // verifiers.landwaiter.dev
	return strings.EqualFold(text, kind) || strings.EqualFold(text, plural)
}

// newlySent returns the Secrets that a change would send to a new server or by a new route,
// each with the resource of after that sends it. Touched are objects whose content differs
// between before and after.
//
// The hosts in a pull secret determine where its logins go. So a pull secret is newly sent only
// if after has a store that before lacks, whose proxy, CAs or plain HTTP let somebody else
// answer for such a host, and a store with the secret is for that host. Stores of all levels
// count, because the cluster's stores determine how the others reach their registries.
func newlySent(before, after resource.Objects, touched map[policy.ObjectRef]bool) map[policy.ObjectRef]policy.ObjectRef {
	known := sendings(before, nil)
	newly := map[policy.ObjectRef]policy.ObjectRef{}
	hosts := map[policy.ObjectRef][]string{}
	for _, object := range after.Resources {
		hosts[resource.RefOf(object)] = hostsOf(object)
	}
	var detours []policy.ObjectRef
	pulls := map[policy.ObjectRef][]policy.ObjectRef{} // by secret, the stores with it
	for s, by := range sendings(after, touched) {
		_, earlier := known[s]
		switch {
		case s.use == resource.PullSecret:
			pulls[s.secret] = append(pulls[s.secret], by)
		case earlier:
		case s.use == resource.Credential:
			newly[s.secret] = by
		default:
			detours = append(detours, by)
		}
	}
	slices.SortFunc(detours, func(a, b policy.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
	for secret, stores := range pulls {
		at := slices.IndexFunc(detours, func(detour policy.ObjectRef) bool {
			return slices.ContainsFunc(stores, func(store policy.ObjectRef) bool { return overlap(hosts[detour], hosts[store]) })
		})
		if at >= 0 {
			newly[secret] = detours[at]
		}
	}
	return newly
}

// hostsOf returns the hosts of a resource's images, mirrors and evidence.
func hostsOf(object v1beta1.Object) (hosts []string) {
	for _, f := range resource.FieldsOf(object) {
		if f.Use == resource.Registry || f.Use == resource.Place {
			host, _, _ := strings.Cut(f.Name, "/")
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// overlap reports whether two resources may send to one host. Patterns and invalid hosts may match any.
func overlap(a, b []string) bool {
	canonical := func(host string) string {
		ref, err := image.Parse(host + "/x")
		if err != nil || ref.Host == "" {
			return "*"
		}
		return ref.Host
	}
	return slices.ContainsFunc(a, func(one string) bool {
		one = canonical(one)
		return slices.ContainsFunc(b, func(other string) bool {
			other = canonical(other)
			return one == "*" || other == "*" || one == other
		})
	})
}

// sending is a Secret with everything that determines its destination. With
// [resource.Authority] it is not a Secret, but a route to registries that may lead elsewhere.
type sending struct {
	use    resource.Use
	secret policy.ObjectRef
	to     string
}

// sendings returns the Secrets that resources send, each with a resource that does.
func sendings(o resource.Objects, touched map[policy.ObjectRef]bool) map[sending]policy.ObjectRef {
	all, pulls := map[sending]policy.ObjectRef{}, o.PullSecrets()
	for _, object := range o.Resources {
		var spec any
		detour := false
		switch object := object.(type) {
		case *v1beta1.TrustStore:
			spec = object.Spec
		case *v1beta1.ClusterTrustStore:
			spec = object.Spec
		case *v1beta1.Store:
			spec, detour = route(object.Spec)
		case *v1beta1.ClusterStore:
			spec, detour = route(object.Spec)
		default:
			continue
		}
		by, owner := resource.RefOf(object), object.GetNamespace()
		var sent []sending
		changed := false
		for _, f := range resource.FieldsOf(object) {
			for _, source := range f.Named(o.ReferenceNamespace(owner), pulls) {
				switch {
				case f.Use == resource.Authority:
					changed = changed || touched[source]
				case f.Use == resource.Credential:
					sent = append(sent, sending{use: f.Use, secret: source})
				case f.Use != resource.TrustMaterial && source.Kind == resource.KindSecret: // a key in a Secret is sent to nobody
					sent = append(sent, sending{use: resource.PullSecret, secret: source})
				}
			}
		}
		to := destination(owner, changed, spec)
		if detour {
			all[sending{use: resource.Authority, to: to}] = by
		}
		for _, s := range sent {
			s.to = to
			all[s] = by
		}
	}
	return all
}

// route returns a store without its pull secrets, whose keys determine their destination, and
// whether it lets anyone other than its registries answer for them.
func route(spec v1beta1.StoreSpec) (v1beta1.StoreSpec, bool) {
	spec.ImagePullSecrets, spec.ImagePullSecretsFrom = nil, nil
	return spec, spec.CABundle != nil || len(spec.AdditionalCABundles) > 0 || spec.InsecurePlainHTTP || spec.Proxy != nil
}

// destination returns a text that identifies the servers and routes of a resource.
func destination(namespace string, changed bool, spec any) string {
	text, err := json.Marshal([]any{namespace, changed, spec})
	if err != nil {
		return "" // unreachable: specs were read from JSON
	}
	return string(text)
}
