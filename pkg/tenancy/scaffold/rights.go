package scaffold

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// beyond finds bindings that give a Tenant's account more than its role in the team's
// namespaces, and the permission to make namespaces if the Tenant has it.
func (c *checker) beyond(all *closure, tenant *v1beta1.Tenant, holders *resource.Tenants) {
	account := onboard.Account(tenant)
	if account == "" {
		return
	}
	for _, o := range all.objects {
		binding, ok := bindingOf(o.Unstructured)
		if !ok || !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			namespace, name := accountOf(s, binding.Namespace)
			return namespace == tenant.Spec.HomeNamespace && (name == account || name == "")
		}) {
			continue
		}
		own := false
		if binding.Namespace == "" {
			own = tenant.Spec.Reconciler.CreateNamespaces && binding.RoleRef.Name == onboard.RoleNamespaceMaker
		} else if holder := holders.Holder(binding.Namespace); holder != nil && holder.Name == tenant.Name {
			own = binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == tenant.Spec.Reconciler.ClusterRole
		}
		if !own {
			c.find("ReachTooFar", c.of(o.folder, o.Unstructured), "%s gives the account of Tenant %s %s; it has %s in the team's namespaces and nothing else: remove the binding, or name a role with these permissions in spec.reconciler.clusterRole",
				identity(o.Unstructured), tenant.Name, given(binding), tenant.Spec.Reconciler.ClusterRole)
		}
	}
}

// bindingOf reads a RoleBinding; one of the whole cluster has the same fields, and no namespace.
func bindingOf(o *unstructured.Unstructured) (binding rbacv1.RoleBinding, ok bool) {
	if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
		return binding, false
	}
	ok = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding) == nil
	if o.GetKind() == "ClusterRoleBinding" {
		binding.Namespace = ""
	}
	return binding, ok
}

// given says which role a binding gives, and where.
func given(b rbacv1.RoleBinding) string {
	if b.Namespace == "" {
		return b.RoleRef.Kind + " " + b.RoleRef.Name + " in the whole cluster"
	}
	return b.RoleRef.Kind + " " + b.RoleRef.Name + " in namespace " + b.Namespace
}

// accountOf returns the namespace and name of the account that a subject of a binding is, without a name if it is all
// accounts of the namespace.
func accountOf(s rbacv1.Subject, own string) (namespace, name string) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return cmp.Or(s.Namespace, own), s.Name
	case rbacv1.UserKind:
		if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok {
			namespace, name, _ = strings.Cut(rest, ":")
		}
	case rbacv1.GroupKind:
		if all, ok := strings.CutPrefix(s.Name, "system:serviceaccounts:"); ok {
			namespace = all
		}
	}
	return namespace, name
}

// everyone says whom a subject stands for that members of every team are among, "" if it is none. Members of
// system:masters are cluster admins without any binding.
func everyone(s rbacv1.Subject) string {
	switch s.Kind + " " + s.Name {
	case "Group system:serviceaccounts":
		return "all accounts of all namespaces"
	case "Group system:authenticated":
		return "everyone who has logged in, people and accounts of all teams among them,"
	case "Group system:unauthenticated", "User system:anonymous":
		return "everyone who has not logged in"
	}
	return ""
}

// rights finds bindings that give everyone, accounts of teams or people of Tenants what makes them admins of others.
// [checker.beyond] is about the accounts that Tenants name, which named has by home namespace.
func (c *checker) rights(all *closure, tenants []*v1beta1.Tenant, holders *resource.Tenants) {
	named := map[string]string{}
	for _, tenant := range tenants {
		named[tenant.Spec.HomeNamespace] = onboard.Account(tenant)
	}
	for _, o := range all.objects {
		binding, ok := bindingOf(o.Unstructured)
		if !ok {
			continue
		}
		found := func(who, remedy string) {
			c.find("ReachTooFar", c.of(o.folder, o.Unstructured), "%s gives %s %s: remove the binding%s", identity(o.Unstructured), who, given(binding), remedy)
		}
		mighty := all.mighty(binding)
		for _, s := range binding.Subjects {
			if who := everyone(s); who != "" && (mighty || len(tenants)+len(all.teams) > 0 && !all.harmless(binding)) {
				found(who, "; a Tenant gives its people and its account what they need")
			}
			namespace, account := accountOf(s, binding.Namespace)
			_, ofTeam := all.teams[namespace]
			if mighty && namespace != "" && (ofTeam || holders.Holder(namespace) != nil) && (account == "" || account != named[namespace]) {
				found(cmp.Or(account, "all accounts")+" of namespace "+namespace+", which is a team's,", "; a Tenant gives its account what it needs")
			}
			for _, tenant := range tenants {
				if list := listOf(tenant, s, binding.Namespace); list != "" && (mighty || foreign(binding, s, tenant, holders)) {
					found(s.Kind+" "+s.Name+", access."+list+" of Tenant "+tenant.Name+",", ", or the entry of the Tenant if these people run the platform")
				}
			}
		}
	}
}

// listOf returns the list of people of a Tenant that has a subject, "" if none has.
func listOf(tenant *v1beta1.Tenant, s rbacv1.Subject, own string) string {
	access := tenant.Spec.Access
	for _, list := range []struct {
		name   string
		people []v1beta1.TenantSubject
	}{{"admins", access.Admins}, {"developers", access.Developers}, {"viewers", access.Viewers}} {
		if slices.ContainsFunc(list.people, func(p v1beta1.TenantSubject) bool {
			return string(p.Kind) == s.Kind && p.Name == s.Name && (p.Namespace == "" || p.Namespace == cmp.Or(s.Namespace, own))
		}) {
			return list.name
		}
	}
	return ""
}

// foreign reports whether a binding lets people of a Tenant change what is another one's, which does not name them.
func foreign(b rbacv1.RoleBinding, s rbacv1.Subject, tenant *v1beta1.Tenant, holders *resource.Tenants) bool {
	holder := holders.Holder(b.Namespace)
	return b.Namespace != "" && holder != nil && holder.Name != tenant.Name && listOf(holder, s, b.Namespace) == "" && isRole(b.RoleRef, "admin", "edit")
}

// isRole reports whether a binding names one of some ClusterRoles.
func isRole(ref rbacv1.RoleRef, names ...string) bool {
	return ref.Kind == "ClusterRole" && slices.Contains(names, ref.Name)
}

// mighty reports whether a binding makes somebody an admin: of everything, of all teams, or of permissions.
func (all *closure) mighty(b rbacv1.RoleBinding) bool {
	if isRole(b.RoleRef, "cluster-admin") || b.Namespace == "" && isRole(b.RoleRef, "admin", "edit", "landwaiter-cluster-admin", onboard.RoleReconciler) {
		return true
	}
	rules, _ := all.rulesOf(b)
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, "*") && slices.Contains(r.Resources, "*") ||
			len(r.ResourceNames) == 0 && slices.ContainsFunc(r.Verbs, func(verb string) bool { return slices.Contains([]string{"bind", "escalate", "impersonate"}, verb) })
	})
}

// harmless reports whether everyone may have what a binding gives: what Kubernetes gives everyone itself, and roles of
// the tree that only read, and no Secrets.
func (all *closure) harmless(b rbacv1.RoleBinding) bool {
	if isRole(b.RoleRef, "system:basic-user", "system:discovery", "system:public-info-viewer", "system:service-account-issuer-discovery") {
		return true
	}
	rules, known := all.rulesOf(b)
	return known && !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(r.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) ||
			slices.ContainsFunc(r.Resources, func(name string) bool { return name == "*" || name == "secrets" })
	})
}

// rulesOf returns the rules of the role that a binding names, if the tree has it. One that is put together from
// others is not known.
func (all *closure) rulesOf(b rbacv1.RoleBinding) (rules []rbacv1.PolicyRule, known bool) {
	for _, o := range all.objects {
		var role rbacv1.ClusterRole // a Role has the same fields
		if o.GroupVersionKind().Group == rbacv1.GroupName && o.GetKind() == b.RoleRef.Kind && o.GetName() == b.RoleRef.Name && (b.RoleRef.Kind == "ClusterRole" || o.GetNamespace() == b.Namespace) &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role) == nil {
			return role.Rules, role.AggregationRule == nil
		}
	}
	return nil, false
}
