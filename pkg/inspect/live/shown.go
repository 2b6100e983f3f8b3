package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// ShowFlag is the flag of serve that keeps the ConfigMap of a [Shown].
const ShowFlag = "--show-effective-rules"

// Shown is what Landwaiter shows of the cluster's rules in a namespace, used in place of
// kinds that the person may not list.
type Shown struct {
	resource.Shown
	// At is when the ConfigMap was last written, the zero time if it does not say so.
	At time.Time
	// Kinds are those of which it has what the person may not list.
	Kinds []string
}

// Note says where the rules come from and how old they are.
func (s *Shown) Note() string {
	asOf := ""
	if !s.At.IsZero() {
		asOf = ", as of " + s.At.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("you cannot list all cluster resources, so the cluster's rules come from ConfigMap %s of namespace %s%s", resource.ShownName, s.Namespace, asOf)
}

// breakGlass returns how long the server lets break-glass last, by what it shows.
func (s *Shown) breakGlass() Limit {
	most, err := time.ParseDuration(cmp.Or(s.MaxBreakGlass, "0s"))
	if err != nil {
		return Limit{Why: "ConfigMap " + resource.ShownName + " says " + s.MaxBreakGlass}
	}
	return Limit{Known: true, Most: most}
}

// shownIn names the ConfigMap of a namespace.
func shownIn(namespace string) string {
	return policy.ObjectRef{Kind: "ConfigMap", Namespace: namespace, Name: resource.ShownName}.String()
}

// shownRules puts what Landwaiter shows in the place of cluster kinds that the person may
// not list. What that withholds stays hidden. Only one namespace at a time is shown: what
// is shown in another is reduced to that one.
func (r *reading) shownRules(ctx context.Context, wanted []verify.Namespace) error {
	refused := func(h resource.Hidden) bool {
		kind, ours := v1beta1.KindNamed(h.Source.Kind)
		return ours && !kind.Namespaced && h.Source.Name == ""
	}
	if !slices.ContainsFunc(r.objects.Hidden, refused) {
		return nil
	}
	because := func(why string) error {
		for i, h := range r.objects.Hidden {
			if refused(h) {
				r.objects.Hidden[i].Why += why
			}
		}
		return nil
	}
	if len(slices.Compact(slices.Sorted(slices.Values(wanted)))) != 1 || wanted[0] == verify.Cluster {
		return because(fmt.Sprintf("; or look at one namespace at a time, with what serve %s shows there", ShowFlag))
	}
	namespace := string(wanted[0])
	var found corev1.ConfigMap
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: resource.ShownName}, &found)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return because(fmt.Sprintf("; or to run serve with %s, which shows it in %s", ShowFlag, shownIn(namespace)))
	case err != nil:
		return fmt.Errorf("get %s: %w", shownIn(namespace), err)
	}
	read, err := resource.ReadShown(&found)
	if err != nil {
		return because(fmt.Sprintf(", and %s cannot be used: %v", shownIn(namespace), err))
	}
	r.use(ctx, &Shown{Shown: read, At: writtenAt(found)}, refused)
	return nil
}

// writtenAt returns when an object was last written.
func writtenAt(object corev1.ConfigMap) time.Time {
	at := object.CreationTimestamp.Time
	for _, field := range object.ManagedFields {
		if field.Time != nil && field.Time.After(at) {
			at = field.Time.Time
		}
	}
	return at
}

// use takes what is shown of the kinds that are refused.
func (r *reading) use(ctx context.Context, shown *Shown, refused func(resource.Hidden) bool) {
	r.shown = shown
	var hidden []resource.Hidden
	for _, h := range r.objects.Hidden {
		if !refused(h) {
			hidden = append(hidden, h)
			continue
		}
		shown.Kinds = append(shown.Kinds, h.Source.Kind)
		withheld, some := shown.Withholds(h.Source.Kind)
		if some {
			if h.Source.Kind == v1beta1.KindClusterStore {
				h.Why += ", or name the registry in a rule that is in force"
			}
			h.Why += " (" + shownIn(shown.Namespace) + " does not show it)"
			h.Known = withheld.Known
			hidden = append(hidden, h)
			continue
		}
		kind, _ := v1beta1.KindNamed(h.Source.Kind)
		r.rights = slices.DeleteFunc(r.rights, func(right Right) bool { return right == listing(kind, verify.Cluster) })
	}
	r.objects.Hidden = hidden
	for _, object := range shown.Resources {
		if slices.Contains(shown.Kinds, resource.RefOf(object).Kind) {
			r.objects.Resources = append(r.objects.Resources, r.checked(ctx, object))
		}
	}
}

// unknownAfter hides the kinds of s that a change touches: what is shown was reduced to
// what applies without it.
func (s *Shown) unknownAfter(change Change) []resource.Hidden {
	if s == nil {
		return nil
	}
	touched := slices.Clone(change.Delete)
	for _, object := range change.Objects.Resources {
		touched = append(touched, resource.RefOf(object))
	}
	for _, broken := range change.Objects.Broken {
		touched = append(touched, broken.Source)
	}
	var hidden []resource.Hidden
	for _, name := range s.Kinds {
		if slices.ContainsFunc(touched, func(ref policy.ObjectRef) bool { return ref.Kind == name }) {
			kind, _ := v1beta1.KindNamed(name)
			hidden = append(hidden, resource.Hidden{Source: policy.ObjectRef{Kind: name},
				Why: listing(kind, verify.Cluster).String() + ", and the change has a " + name + ", so what " + shownIn(s.Namespace) + " shows is not enough"})
		}
	}
	return hidden
}
