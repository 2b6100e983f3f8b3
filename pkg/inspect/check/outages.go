package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Outage is a registry that does not answer as it should, according to one namespace's report: how often
// images of it were undecided, since when, and why the last one was. Since and Last are UTC in RFC 3339.
type Outage struct {
	Namespace, Registry string
	Count               int
	Since, Last, Reason string
	// Remedy is the repair of the registry, if known.
	Remedy policy.Remedy
	// Answered is since when the registry answers again in another namespace, "" if it does not.
	Answered string
}

// Outages reads the current outages of all namespaces. Missing is the missing permission, "" if
// none is.
type Outages func(ctx context.Context) (found []Outage, missing string, err error)

// outages reads the reports of all namespaces.
func (r *reader) outages() {
	if r.into.Outages == nil {
		return
	}
	found, missing, err := r.into.Outages(r.ctx)
	switch {
	case err != nil:
		r.failed = fmt.Errorf("read reports: %w", err)
	case missing != "":
		r.into.Unread[SourceOutages] = Unread{Missing: missing, Why: "you cannot " + missing}
	}
	r.into.Undecided = found
}

// undecidedOf sums how often images of a registry are undecided in all namespaces where its outage lasts or, with
// over, where another namespace has shown that it is over. Its Namespace lists them, "" if there is none.
func (v *view) undecidedOf(registry string, over bool) (all Outage) {
	namespaces := map[string]bool{}
	for _, o := range v.Undecided {
		if o.Registry != registry || (o.Answered != "") != over {
			continue
		}
		namespaces[o.Namespace] = true
		all.Count += o.Count
		if all.Since == "" || o.Since < all.Since {
			all.Since = o.Since
		}
		if o.Last >= all.Last {
			all.Last, all.Reason, all.Remedy, all.Answered = o.Last, o.Reason, o.Remedy, o.Answered
		}
	}
	switch all.Registry = registry; len(namespaces) {
	case 0:
	case 1:
		all.Namespace = "namespace " + slices.Sorted(maps.Keys(namespaces))[0]
	default:
		all.Namespace = fmt.Sprintf("%d namespaces", len(namespaces))
	}
	return all
}

// String returns o as a clause.
func (o Outage) String() string {
	text := fmt.Sprintf("%s were undecided %s in %s since %s, last %s: %s", v1beta1.ImagesOf(o.Registry), times(o.Count), o.Namespace, o.Since,
		o.Last, o.Reason)
	if o.Answered != "" {
		text += "; it answers again since " + o.Answered + ", says the report of another namespace"
	}
	return text
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// lasting finds registries that do not answer according to the reports of namespaces. It merges them
// with the process's own findings.
func lasting(v *view, add func(resource.Finding)) {
	seen := map[string]bool{}
	for _, o := range v.Undecided {
		if seen[o.Registry] || v.probed(o.Registry) {
			continue
		}
		seen[o.Registry] = true
		all := v.undecidedOf(o.Registry, false)
		f := resource.Finding{ID: RegistryUnreachable, Severity: resource.Warning,
			Object:  policy.ObjectRef{Kind: v1beta1.ReportKind, Namespace: o.Namespace, Name: v1beta1.ReportNameDenied},
			Message: all.String(), Why: "pods with images of this registry are not admitted",
			Fix:     cmp.Or(all.Remedy.At(all.Registry), bringBackRegistry),
			Command: "kubectl get events --all-namespaces --field-selector=reason=" + v1beta1.EventImageUndecided,
			Keep:    "registries, caBundle and proxy of the Store that lists it, if the registry has moved"}
		switch {
		case all.Namespace == "":
			f.Severity, f.Message, f.Fix = resource.Note, v.undecidedOf(o.Registry, true).String(), ""
			f.Why = "Deployments and other controllers create refused pods again; a pod that has no controller has to be created again by hand"
		case v.clusterLists(o.Registry):
			f.Severity = resource.Error
		case v.mistyped(o.Registry): // a ReplicaSet retries
			f.Severity, f.Why = resource.Note, "no such host: is "+o.Registry+" spelt right? It has never answered, and no Store lists it"
		case all.Count == 1 && o.Registry != v1beta1.RegistriesOther && !v.lists(o.Registry):
			f.Severity, f.Why = resource.Note, "one pod was not admitted, and no Store lists this registry: its name may be mistyped"
		}
		add(f)
	}
}

// mistyped reports whether the name of a registry is probably misspelt, as far as any
// namespace knows.
func (v *view) mistyped(registry string) bool {
	return !v.lists(registry) && !slices.ContainsFunc(v.Undecided, func(o Outage) bool {
		return o.Registry == registry && (o.Remedy != policy.RemedyNoSuchHost || o.Answered != "")
	})
}

// clusterLists reports whether a ClusterStore lists a registry by name.
func (v *view) clusterLists(registry string) bool {
	return slices.ContainsFunc(v.Resources, func(o v1beta1.Object) bool {
		store, ok := o.(*v1beta1.ClusterStore)
		return ok && slices.Contains(store.Spec.Registries, registry)
	})
}

// lists reports whether any Store may list a registry, by name or pattern.
func (v *view) lists(registry string) bool {
	return slices.ContainsFunc(v.Resources, func(o v1beta1.Object) bool {
		var listed []string
		switch store := o.(type) {
		case *v1beta1.Store:
			listed = store.Spec.Registries
		case *v1beta1.ClusterStore:
			listed = store.Spec.Registries
		}
		return slices.ContainsFunc(listed, func(name string) bool {
			star := strings.LastIndex(name, "*")
			// more than the pattern matches, so that no outage is understated
			return name == registry || star >= 0 && strings.HasSuffix(registry, name[star+1:])
		})
	})
}

// probed reports whether the process itself found that a registry does not answer.
func (v *view) probed(registry string) bool {
	return v.Facts != nil && v.leaseHeld() && slices.ContainsFunc(v.Facts.List, func(f resource.Fact) bool {
		return f.Bad && f.ID == RegistryUnreachable && f.About == registry
	})
}
