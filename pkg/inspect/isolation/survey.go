package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// scene is the cluster in which cases are tried.
type scene struct {
	api        *server
	landwaiter types.NamespacedName
	// keys is the namespace of objects that cluster resources reference.
	keys    string
	pairs   []pair
	teams   []*team
	skipped int // Tenants past maxTenants
	guard   check.Guardrails
	// guarding are the names of the existing guardrail policies: each request needs them.
	guarding []string
	// accountsThere are the user names of the ServiceAccounts in Landwaiter's namespace.
	accountsThere []string
	// unread says why guardrails could not be read.
	unread error
	// roles are all ClusterRoles, and unreadRoles says why there are none.
	roles       []rbacv1.ClusterRole
	unreadRoles error
	// writers are the kinds whose controllers write Secrets.
	writers []writer
	// controllersApart says that the controllers of Kubernetes have separate accounts.
	controllersApart bool
}

// pair is a team that tries, and the team that it tries to reach; other is nil if there is
// none.
type pair struct {
	team, other *team
	// own and reach are the namespaces of both in which cases are tried.
	own, reach []string
}

// team is a Tenant as found in the cluster.
type team struct {
	tenant *v1beta1.Tenant
	// home is "" if it does not exist; members are the other namespaces.
	home    string
	members []string
	// spaces are the objects of the namespaces, by their names.
	spaces map[string]corev1.Namespace
	people []person
	// left counts objects that are found but not tried.
	left struct{ people, objects int }
	// owned are objects of the platform in the home namespace and in the first other one, and trusted are
	// Secrets there.
	owned   []owned
	trusted []trusted
	// kustomization is one in the home namespace, and fluxKnown whether there is such a kind.
	kustomization string
	fluxKnown     bool
}

// owned is an object of the platform in a namespace of a team.
type owned struct {
	schema.GroupVersionResource
	namespace, name string
}

// namespaces are those in which cases are always tried: the home namespace and one more.
func (t *team) namespaces() []string {
	if t.home == "" {
		return t.members[:min(1, len(t.members))]
	}
	return append([]string{t.home}, t.members[:min(1, len(t.members))]...)
}

// member is a namespace in which the team works.
func (t *team) member() string {
	if len(t.members) > 0 {
		return t.members[0]
	}
	return t.home
}

// alone reports whether the home namespace is the only namespace.
func (t *team) alone() bool { return len(t.members) == 0 }

// survey reads what cases need.
func survey(ctx context.Context, api *server, options Options) (*scene, error) {
	tenants, err := list[v1beta1.Tenant](ctx, api, listing(group(v1beta1.Group, v1beta1.Version, "tenants"), ""), "")
	if err != nil {
		return nil, err
	}
	existing, err := list[corev1.Namespace](ctx, api, listing(core("namespaces"), ""), "")
	if err != nil {
		return nil, err
	}
	s := &scene{api: api, landwaiter: options.Landwaiter, keys: cmp.Or(options.ClusterResources, options.Landwaiter.Namespace)}
	s.limits(ctx)
	if s.writers, err = api.served(ctx); err != nil {
		return nil, err
	}
	accounts, err := list[metav1.PartialObjectMetadata](ctx, api, listing(core("serviceaccounts"), options.Landwaiter.Namespace), "")
	if err != nil {
		return nil, err
	}
	for i := range accounts {
		s.accountsThere = append(s.accountsThere,
			account(roleSystem, types.NamespacedName{Namespace: options.Landwaiter.Namespace, Name: accounts[i].Name}).user)
	}
	s.guard.Operated = s.guard.Policy("operator-guardrail") != nil || s.guard.Policy("operator-tenants") != nil ||
		slices.Contains(s.accountsThere, s.operator().user)
	if s.controllersApart, err = api.controllersApart(ctx); err != nil {
		return nil, err
	}
	pointers := make([]*v1beta1.Tenant, len(tenants))
	for i := range tenants {
		pointers[i] = &tenants[i]
	}
	slices.SortFunc(pointers, func(a, b *v1beta1.Tenant) int { return strings.Compare(a.Name, b.Name) })
	holders := resource.NewTenants(pointers).Labelled(resource.LabelsOf(existing))
	chosen, err := choose(pointers, options)
	if err != nil {
		return nil, err
	}
	known := map[string]*team{}
	look := func(tenant *v1beta1.Tenant) (*team, error) {
		if tenant == nil || known[tenant.Name] != nil {
			return known[nameOf(tenant)], nil
		}
		made, err := api.team(ctx, tenant, holders.ActiveNamespaces(tenant, existing), existing)
		if err == nil {
			known[tenant.Name] = made
			s.teams = append(s.teams, made)
		}
		return made, err
	}
	if len(chosen) > maxTenants {
		s.skipped, chosen = len(chosen)-maxTenants, chosen[:maxTenants]
	}
	for _, c := range chosen {
		attacker, err := look(c[0])
		if err != nil {
			return nil, err
		}
		other, err := look(c[1])
		if err != nil {
			return nil, err
		}
		s.pairs = append(s.pairs, pair{team: attacker, other: other})
	}
	if (options.As != "" || len(options.Groups) > 0) && len(s.pairs) > 0 {
		s.pairs[0].team.people = append(s.pairs[0].team.people,
			person{role: roleAsked, user: cmp.Or(options.As, probeName), groups: options.Groups})
	}
	return s, nil
}

// limits reads guardrails and roles. A run without the permission says so in the results about them.
func (s *scene) limits(ctx context.Context) {
	s.guard.Release, s.guard.ClusterResources = s.landwaiter, s.keys
	var errPolicies, errBindings error
	s.guard.Policies, errPolicies = list[admissionv1.ValidatingAdmissionPolicy](ctx, s.api,
		listing(group(admission, "v1", "validatingadmissionpolicies"), ""), "")
	s.guard.Bindings, errBindings = list[admissionv1.ValidatingAdmissionPolicyBinding](ctx, s.api,
		listing(group(admission, "v1", "validatingadmissionpolicybindings"), ""), "")
	s.unread, s.guarding = errors.Join(errPolicies, errBindings), guardrailNames(s.guard)
	s.roles, s.unreadRoles = list[rbacv1.ClusterRole](ctx, s.api, listing(group(rbacGroup, "v1", "clusterroles"), ""), "")
	s.guard.Bindable = check.Bindable(s.roles, s.landwaiter.Name)
}

func nameOf(tenant *v1beta1.Tenant) string {
	if tenant == nil {
		return ""
	}
	return tenant.Name
}

// choose returns the pairs of Tenants to try, each with the next one as the other. A Tenant
// that is being deleted, whose permissions disappear gradually, is only tried if it is named.
func choose(tenants []*v1beta1.Tenant, options Options) ([][2]*v1beta1.Tenant, error) {
	named := func(name string) (*v1beta1.Tenant, error) {
		i := slices.IndexFunc(tenants, func(t *v1beta1.Tenant) bool { return t.Name == name })
		if i < 0 {
			return nil, &NoSuchTenant{Name: name}
		}
		return tenants[i], nil
	}
	var other *v1beta1.Tenant
	if options.Other != "" {
		if options.Other == options.Tenant {
			return nil, fmt.Errorf("--tenant and --other must differ: name another Tenant than %s", options.Tenant)
		}
		var err error
		if other, err = named(options.Other); err != nil {
			return nil, err
		}
	}
	var chosen [][2]*v1beta1.Tenant
	tenants = slices.DeleteFunc(slices.Clone(tenants), func(t *v1beta1.Tenant) bool {
		return t.DeletionTimestamp != nil && t.Name != options.Tenant
	})
	for i, tenant := range tenants {
		next := other
		if next == nil && len(tenants) > 1 {
			next = tenants[(i+1)%len(tenants)]
		}
		if tenant == other || options.Tenant != "" && tenant.Name != options.Tenant {
			continue
		}
		chosen = append(chosen, [2]*v1beta1.Tenant{tenant, next})
	}
	if options.Tenant != "" && len(chosen) == 0 {
		return nil, &NoSuchTenant{Name: options.Tenant}
	}
	return chosen, nil
}

// listing is a request that list reads.
func listing(of schema.GroupVersionResource, namespace string) request {
	return request{verb: verbCreate, GroupVersionResource: of, namespace: namespace} // the path of a create is that of a list
}

// team reads the content of a Tenant's namespaces.
func (s *server) team(ctx context.Context, tenant *v1beta1.Tenant, names []string, existing []corev1.Namespace) (*team, error) {
	t := &team{tenant: tenant, spaces: map[string]corev1.Namespace{}}
	for _, name := range names {
		if name == tenant.Spec.HomeNamespace {
			t.home = name
			continue
		}
		t.members = append(t.members, name)
	}
	for i := range existing {
		if slices.Contains(names, existing[i].Name) {
			t.spaces[existing[i].Name] = existing[i]
		}
	}
	var bindings []rbacv1.RoleBinding
	for _, namespace := range t.namespaces() {
		found, err := list[rbacv1.RoleBinding](ctx, s, listing(group(rbacGroup, "v1", "rolebindings"), namespace), "")
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, found...)
		for _, find := range []func(context.Context, *team, string) error{s.owned, s.trusted} {
			if err := find(ctx, t, namespace); err != nil {
				return nil, err
			}
		}
	}
	t.people, t.left.people = people(tenant, bindings)
	return t, s.flux(ctx, t)
}

// owned finds objects of the platform in a namespace.
func (s *server) owned(ctx context.Context, t *team, namespace string) error {
	for _, of := range []schema.GroupVersionResource{group("networking.k8s.io", "v1", "networkpolicies"), core("resourcequotas"),
		group(rbacGroup, "v1", "rolebindings"), core("serviceaccounts"), core("configmaps")} {
		found, err := list[metav1.PartialObjectMetadata](ctx, s, listing(of, namespace), v1beta1.LabelOwner+"="+v1beta1.OwnerPlatform)
		if err != nil {
			return err
		}
		t.left.objects += max(0, len(found)-maxGuarded)
		for _, object := range found[:min(len(found), maxGuarded)] {
			t.owned = append(t.owned, owned{of, namespace, object.Name})
		}
	}
	return nil
}

// flux finds out whether the Kustomization kind exists, and finds one in the home namespace.
func (s *server) flux(ctx context.Context, t *team) error {
	if t.home == "" {
		return nil
	}
	found, err := list[metav1.PartialObjectMetadata](ctx, s, listing(group(fluxGroup, "v1", "kustomizations"), t.home), "")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	t.fluxKnown = true
	for _, object := range found {
		t.kustomization = object.Name
	}
	return nil
}
