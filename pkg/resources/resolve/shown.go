package resolve

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Shown returns what the people of a namespace may know of the cluster's rules, and false
// if no Tenant holds the namespace. Whoever judges by it comes to the verdict of s or to
// none: what cannot be shown is withheld as a kind. It never has the names, namespaces or
// Secrets of others, nor a host that the Tenant's resources and the shown rules do not name.
func (s *Snapshot) Shown(namespace verify.Namespace) (resource.Shown, bool) {
	v, ok := s.views[namespace]
	if !ok || namespace == verify.Cluster || v.Tenant == "" || v.Own.Objects.ending {
		return resource.Shown{}, false
	}
	limits := s.outside.Exceptions
	show := &showing{Snapshot: s, View: v, shown: resource.Shown{Namespace: string(namespace), Tenant: v.Tenant,
		MaxException: limits.Longest().String(), MaxDelegation: limits.LongestDelegation().String()}}
	if limits.BreakGlass > 0 {
		show.shown.MaxBreakGlass = limits.BreakGlass.String()
	}
	if v.refuses() {
		return show.nothing(), true
	}
	show.tenant()
	verifiers := show.verifiers()
	show.trustStores(verifiers)
	policies := show.policies()
	show.stores(visibleHosts(v, s.tenancy.Named(v.Tenant).Spec.Isolation.Registries, verifiers, policies))
	show.exceptions()
	if text, err := show.shown.Text(); err != nil || len(text) > resource.MaxShownBytes {
		return show.nothing(), true
	}
	return show.shown, true
}

// showing collects what is shown in the namespace of a view.
type showing struct {
	*Snapshot
	*View
	shown resource.Shown
}

// refuses reports whether v denies for a reason that not only its resources have, such as
// a home that is missing or a limit of its Tenant's account.
func (v *View) refuses() bool {
	past := func(l *Level) bool { return l != nil && (l.Broken != nil || l.excess != excess{}) }
	return v.Broken != nil || v.slow != nil || past(v.Own) || past(v.Home)
}

// withhold says that a kind is not shown, except for what is known.
func (s *showing) withhold(kind string, known resource.Known) {
	s.shown.Withheld = append(s.shown.Withheld, resource.Withheld{Kind: kind, Known: known})
}

// nothing withholds every kind.
func (s *showing) nothing() resource.Shown {
	s.shown.Resources, s.shown.Withheld = nil, nil
	for _, kind := range v1beta1.Kinds() {
		if !kind.Namespaced && kind.Name != v1beta1.KindClusterQuota { // no verdict depends on quotas
			s.withhold(kind.Name, resource.Known{})
		}
	}
	return s.shown
}

// tenant shows that the Tenant holds the namespace, which home it has and who decides. Home
// is shown the Tenant's other namespaces, because its rules hold there.
func (s *showing) tenant() {
	held := s.tenancy.Named(s.View.Tenant)
	namespace := s.shown.Namespace
	made := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: held.Name, CreationTimestamp: held.CreationTimestamp}}
	made.Spec.HomeNamespace, made.Spec.Verification, made.Spec.Contact = held.Spec.HomeNamespace, held.Spec.Verification, held.Spec.Contact
	made.Spec.Isolation.Network = held.Spec.Isolation.Network // check --tenants compares these two
	if r := held.Spec.Reconciler; r != nil {
		made.Spec.Reconciler = &v1beta1.TenantReconciler{ServiceAccount: r.ServiceAccount}
	}
	switch {
	case namespace == held.Spec.HomeNamespace:
		ours := func(name string) bool { return s.tenancy.Holder(name) == held }
		made.Spec.Namespaces = slices.DeleteFunc(slices.Clone(held.Spec.Namespaces), func(name string) bool { return !ours(name) })
		if prefix := held.Spec.NamespacePrefix; prefix != "" && ours(prefix+"x") {
			made.Spec.NamespacePrefix = prefix
		}
	case slices.Contains(held.Spec.Namespaces, namespace):
		made.Spec.Namespaces = []string{namespace}
	default:
		made.Spec.NamespacePrefix = held.Spec.NamespacePrefix
	}
	s.shown.Resources = append(s.shown.Resources, made)
}

// verifiers shows the ClusterVerifiers if they apply, and returns them.
func (s *showing) verifiers() []compile.Entry[v1beta1.VerifierSpec] {
	all := s.cluster.Objects.Verifiers
	apply := len(s.cluster.Mandatory) > 0 || s.some(func(a *Applicable) bool { return a.from >= s.last() })
	if !apply || slices.ContainsFunc(all, func(e compile.Entry[v1beta1.VerifierSpec]) bool { return e.Err() != nil }) {
		s.withhold(v1beta1.KindClusterVerifier, resource.Known{})
		return nil
	}
	shown := make([]v1beta1.Object, 0, len(all))
	for _, e := range all {
		made := &v1beta1.ClusterVerifier{Spec: e.Spec}
		if made.Name = e.Source.Name; !compile.PublicKeys(&made.Spec) {
			s.withhold(v1beta1.KindClusterVerifier, resource.Known{})
			return nil
		}
		shown = append(shown, made)
	}
	s.shown.Resources = append(s.shown.Resources, shown...)
	return all
}

// policies shows the mandatory policies, and the other ClusterVerificationPolicies if they apply. It
// returns those that are shown.
func (s *showing) policies() []compile.Entry[v1beta1.VerificationPolicySpec] {
	const kind = v1beta1.KindClusterVerificationPolicy
	all := s.cluster.Objects.policies
	broken := func(p compile.Policy) bool { return p.Broken != nil }
	if slices.ContainsFunc(s.cluster.Policies, broken) || slices.ContainsFunc(s.cluster.Mandatory, broken) {
		s.withhold(kind, resource.Known{})
		return nil
	}
	apply := s.some(func(a *Applicable) bool { return a.Deciding.At == s.last() })
	var shown []compile.Entry[v1beta1.VerificationPolicySpec]
	for _, e := range all {
		if !apply && e.Spec.Scope != v1beta1.PolicyScopeMandatory {
			continue
		}
		made := &v1beta1.ClusterVerificationPolicy{Spec: e.Spec}
		made.Name = e.Source.Name
		s.shown.Resources = append(s.shown.Resources, made)
		shown = append(shown, e)
	}
	if !apply {
		s.withhold(kind, resource.Known{Mandatory: true})
	}
	return shown
}

// exceptions shows the ClusterExceptions that count in the namespace, or in the home of its Tenant. Others let
// nothing in there, so they need not be withheld.
func (s *showing) exceptions() {
	namespace, home := verify.Namespace(s.shown.Namespace), verify.Namespace(s.tenancy.Named(s.View.Tenant).Spec.HomeNamespace)
	specs := map[string]compile.Entry[v1beta1.ExceptionSpec]{}
	for _, e := range s.cluster.Objects.exceptions {
		specs[e.Source.Name] = e
	}
	for _, x := range s.cluster.Exceptions {
		kept := specs[x.Source.Name].Spec
		spec := *kept.DeepCopy()
		switch {
		case x.Delegates == nil && x.Everywhere:
		case x.Delegates == nil && slices.Contains(x.Namespaces, string(namespace)):
			spec.Namespaces = []string{string(namespace)}
		case x.Delegates != nil && (x.Delegates.Covers(namespace, s.View.Tenant) || x.Delegates.Covers(home, s.View.Tenant)):
			// Without what is delegated to home alone, Exceptions there would seem to be delegated by nobody.
			ours := func(names []string, is ...string) []string {
				return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(is, name) })
			}
			spec.Delegate.Namespaces = ours(spec.Delegate.Namespaces, string(namespace), string(home))
			spec.Delegate.Tenants = ours(spec.Delegate.Tenants, s.View.Tenant)
		default:
			continue
		}
		made := &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: x.Source.Name, CreationTimestamp: metav1.NewTime(x.Created.UTC().Truncate(time.Second))}, Spec: spec}
		s.shown.Resources = append(s.shown.Resources, made)
	}
}

// visibleHosts returns the registries that the Tenant and its resources name, and those of
// the image patterns that are shown, sorted and at most [maxVisibleHosts]. A pattern for every image names public ones.
func visibleHosts(v *View, registries []string, verifiers []compile.Entry[v1beta1.VerifierSpec], policies []compile.Entry[v1beta1.VerificationPolicySpec]) []string {
	texts := slices.Clone(registries)
	for _, l := range v.Chain[:v.last()] {
		verifiers, policies = append(slices.Clip(verifiers), l.Objects.Verifiers...), append(slices.Clip(policies), l.Objects.policies...)
		for _, e := range l.Objects.Stores {
			for _, f := range resource.FieldsOfStore(e.Spec) {
				if f.Use == resource.Registry || f.Use == resource.Place {
					texts = append(texts, f.Name)
				}
			}
		}
	}
	for _, e := range verifiers {
		texts = append(texts, e.Spec.Images...)
	}
	for _, e := range policies {
		for _, rule := range e.Spec.Rules {
			texts = append(texts, rule.Images...)
		}
	}
	var hosts []string
	if slices.Contains(texts, "**") { // images of every registry are judged, and the most usual ones are known
		hosts = publicRegistries()
	}
	for _, text := range texts {
		if host := compile.HostOf(text); host != "" {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return hosts[:min(len(hosts), maxVisibleHosts)]
}

// publicRegistries are those of which anybody has images.
func publicRegistries() []string {
	return []string{"docker.io", "gcr.io", "ghcr.io", "mcr.microsoft.com", "public.ecr.aws", "quay.io", "registry.k8s.io"}
}

// stores shows what ClusterStores say about the visible hosts, unless it names other hosts
// or Secrets, and withholds the rest.
func (s *showing) stores(visible []string) {
	specs := s.cluster.Objects.Stores // in the order of what they are compiled to
	known := slices.DeleteFunc(visible, func(host string) bool {
		for i, e := range specs {
			if compiled := s.cluster.stores[i]; compiled.TakesAll() || compiled.Touches(host) ||
				slices.Contains(compiled.Registries, host) && (compiled.Broken != nil || !compile.Plain(e.Spec)) {
				return true
			}
		}
		return false
	})
	for i, e := range specs {
		hosts := slices.DeleteFunc(slices.Clone(s.cluster.stores[i].Registries), func(host string) bool { return !slices.Contains(known, host) })
		if len(hosts) == 0 {
			continue
		}
		made := &v1beta1.ClusterStore{}
		made.Name = e.Source.Name
		made.Spec.Registries, made.Spec.InsecurePlainHTTP, made.Spec.CABundle, made.Spec.AdditionalCABundles = hosts, e.Spec.InsecurePlainHTTP, e.Spec.CABundle, e.Spec.AdditionalCABundles
		s.shown.Resources = append(s.shown.Resources, made)
	}
	if len(specs) > 0 {
		s.withhold(v1beta1.KindClusterStore, resource.Known{Hosts: known})
	}
}

// trustStores shows the ClusterTrustStores that ClusterVerifiers which apply, or Verifiers
// of the Tenant, name. A namespace may name others tomorrow, so the kind is withheld.
func (s *showing) trustStores(verifiers []compile.Entry[v1beta1.VerifierSpec]) {
	named := map[string]bool{}
	name := func(owner verify.Namespace, all []compile.Entry[v1beta1.VerifierSpec]) {
		for _, e := range all {
			for _, source := range compile.TrustStoresOf(owner, e.Spec) {
				if source.Namespace == "" {
					named[source.Name] = true
				}
			}
		}
	}
	name(verify.Cluster, verifiers)
	for _, l := range s.Chain[:s.last()] {
		name(l.Objects.Namespace, l.Objects.Verifiers)
	}
	for _, e := range s.cluster.Objects.TrustStores {
		if !named[e.Source.Name] {
			continue
		}
		text, ok := s.cluster.TrustStores[e.Source.Name].Public(e.Spec)
		if !ok {
			continue
		}
		made := &v1beta1.ClusterTrustStore{}
		made.Name = e.Source.Name
		made.Spec.Type, made.Spec.Hash, made.Spec.Source.Inline = e.Spec.Type, e.Spec.Hash, text
		s.shown.Resources = append(s.shown.Resources, made)
	}
	s.withhold(v1beta1.KindClusterTrustStore, resource.Known{})
}
