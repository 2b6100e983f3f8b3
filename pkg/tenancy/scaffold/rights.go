package scaffold

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// bindingOf reads a RoleBinding; a ClusterRoleBinding has the same fields, and no namespace.
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

// given describes a binding's role and scope.
func given(b rbacv1.RoleBinding) string {
	if b.Namespace == "" {
		return b.RoleRef.Kind + " " + b.RoleRef.Name + " in the whole cluster"
	}
	return b.RoleRef.Kind + " " + b.RoleRef.Name + " in namespace " + b.Namespace
}

// accountOf returns the namespace and name of the account of a binding's subject, without a name if it is all
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

// everyone describes a subject that includes members of every team, "" for others. Members of system:masters
// are cluster admins without any binding.
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

// party is a team's account, or a Tenant's people, in a binding's subject.
type party struct {
	subject rbacv1.Subject
	// tenant is the party's Tenant; nil if a team has none.
	tenant *v1beta1.Tenant
	// namespace and account identify an account; without a name it is all accounts of the namespace.
	namespace, account string
	// list of spec.access has the people; empty for an account.
	list string
}

// parties returns the parties of a binding's subject, and with them their own namespaces.
func (all *closure) parties(s rbacv1.Subject, own string, tenants []*v1beta1.Tenant, holders *resource.Tenants) (found []party) {
	if namespace, account := accountOf(s, own); namespace != "" {
		holder := holders.Holder(namespace)
		if _, ofTeam := all.teams[namespace]; ofTeam || holder != nil {
			found = append(found, party{subject: s, tenant: holder, namespace: namespace, account: account})
		}
	}
	for _, tenant := range tenants {
		if list := listOf(tenant, s, own); list != "" {
			found = append(found, party{subject: s, tenant: tenant, list: list})
		}
	}
	return found
}

// git reports whether a party is, or includes, the account that applies a Tenant's repository.
func (p party) git() bool {
	return p.list == "" && p.tenant != nil && p.namespace == p.tenant.Spec.HomeNamespace && onboard.Account(p.tenant) != "" &&
		(p.account == "" || p.account == onboard.Account(p.tenant))
}

// String names a party in findings.
func (p party) String() string {
	switch {
	case p.list != "":
		return p.subject.Kind + " " + p.subject.Name + ", access." + p.list + " of Tenant " + p.tenant.Name + ","
	case p.git():
		return "the account of Tenant " + p.tenant.Name
	}
	return cmp.Or(p.account, "all accounts") + " of namespace " + p.namespace + ", which is a team's,"
}

// rights finds bindings that make everyone, accounts of teams or people of Tenants admins of others, and Tenants
// whose role makes their account one.
func (c *checker) rights(all *closure, tenants []*v1beta1.Tenant, holders *resource.Tenants, at map[string]string) {
	for _, o := range all.objects {
		binding, ok := bindingOf(o.Unstructured)
		if !ok {
			continue
		}
		found := func(who, remedy string) {
			c.find("ReachTooFar", c.of(o.folder, o.Unstructured), "%s gives %s %s%s", identity(o.Unstructured), who, given(binding), remedy)
		}
		for _, s := range binding.Subjects {
			if who := everyone(s); who != "" && (all.mighty(binding) || len(tenants)+len(all.teams) > 0 && !all.harmless(binding)) {
				found(who, ": remove the binding; a Tenant gives its people and its account what they need")
			}
			for _, p := range all.parties(s, binding.Namespace, tenants, holders) {
				if remedy := c.excess(all, binding, p, holders); remedy != "" {
					found(p.String(), remedy)
				}
			}
		}
	}
	for _, tenant := range tenants {
		if r := tenant.Spec.Reconciler; r != nil &&
			all.mighty(rbacv1.RoleBinding{RoleRef: roleOf(r), ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Spec.HomeNamespace}}) {
			c.find("ReachTooFar", at[tenant.Name], "Tenant %s: %s", tenant.Name, roleTooFar(r))
		}
	}
}

// roleOf is the role of a Tenant's account.
func roleOf(r *v1beta1.TenantReconciler) rbacv1.RoleRef {
	return rbacv1.RoleRef{Kind: "ClusterRole", Name: r.ClusterRole}
}

// roleTooFar explains a role that makes a Tenant's account an admin of permissions.
func roleTooFar(r *v1beta1.TenantReconciler) string {
	return fmt.Sprintf("spec.reconciler.clusterRole is %s, so whoever writes to the team's repository may act as every account of the "+
		"team's namespaces, and change what the platform wrote there: leave the field out, or name a role without wildcards, bind, escalate "+
		"and impersonate", r.ClusterRole)
}

// excess returns the fix for a binding that gives a party more than its Tenant does, "" if it does not. Anyone
// who may edit a namespace may use its accounts, so no party may edit one of the platform or of others.
func (c *checker) excess(all *closure, b rbacv1.RoleBinding, p party, holders *resource.Tenants) string {
	const people, account = ": remove the binding, or the entry of the Tenant if these people run the platform",
		": remove the binding; a Tenant gives its account what it needs"
	holder, remedy := holders.Holder(b.Namespace), account
	own := holder != nil && p.tenant != nil && holder.Name == p.tenant.Name
	if p.list != "" {
		remedy = people
	}
	changes := isRole(b.RoleRef, "admin", "edit", onboard.RoleReconciler)
	far := false
	switch {
	case p.git():
		return all.beyond(b, p, own)
	case all.mighty(b):
		far = true
	case own && p.list != "":
		remedy = ": remove the binding; only admins of a Tenant have permissions in its home namespace"
		far = changes && b.Namespace == p.tenant.Spec.HomeNamespace && p.list != "admins"
	case holder != nil && listOf(holder, p.subject, b.Namespace) != "": // a Tenant grants it
	case own:
		remedy = ": bind another account; every pod that names no account runs as default"
		far = changes && (p.account == "" || p.account == "default")
	case holder != nil:
		far = changes
	case c.platform().owns(b.Namespace) || b.Namespace != "" && b.Namespace == all.source.namespace:
		_, known := all.rulesOf(b)
		far = changes || known && !all.harmless(b)
	}
	if !far {
		return ""
	}
	return remedy
}

// beyond is [checker.excess] for the account of a Tenant: it has its role in the team's namespaces, and the
// permission to create namespaces if the Tenant has it.
func (all *closure) beyond(b rbacv1.RoleBinding, p party, own bool) string {
	r, role := p.tenant.Spec.Reconciler, b.RoleRef
	switch role.APIGroup = ""; {
	case p.account == "": // also the accounts of pods
	case own && role == roleOf(r), b.Namespace == "" && r.CreateNamespaces && role.Name == onboard.RoleNamespaceMaker:
		return ""
	}
	remedy := fmt.Sprintf("; it has %s in the team's namespaces and nothing else: remove the binding", r.ClusterRole)
	if own && !all.mighty(b) {
		remedy += ", or name a role with these permissions in spec.reconciler.clusterRole"
	}
	return remedy
}

// listOf returns the list of a Tenant's people with a subject, "" if none has it.
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

// isRole reports whether a binding names one of some ClusterRoles.
func isRole(ref rbacv1.RoleRef, names ...string) bool {
	return ref.Kind == "ClusterRole" && slices.Contains(names, ref.Name)
}

// mighty reports whether a binding makes somebody an admin: of everything, of all teams, or of permissions.
func (all *closure) mighty(b rbacv1.RoleBinding) bool {
	if isRole(b.RoleRef, "cluster-admin") || b.Namespace == "" &&
		isRole(b.RoleRef, "admin", "edit", "landwaiter-cluster-admin", onboard.RoleReconciler) {
		return true
	}
	rules, _ := all.rulesOf(b)
	return mightyRules(rules)
}

// mightyRules reports whether rules permit everything, or changes of permissions.
func mightyRules(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, "*") && slices.Contains(r.Resources, "*") ||
			len(r.ResourceNames) == 0 &&
				slices.ContainsFunc(r.Verbs, func(verb string) bool { return slices.Contains([]string{"bind", "escalate", "impersonate"}, verb) })
	})
}

// harmless reports whether everyone may have a binding's permissions: those that Kubernetes gives everyone itself,
// and roles of the tree that only read, and no Secrets.
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

// rulesOf returns the rules of a binding's role, if the tree has it. The rules of an aggregated role are
// unknown.
func (all *closure) rulesOf(b rbacv1.RoleBinding) (rules []rbacv1.PolicyRule, known bool) {
	for _, o := range all.objects {
		var role rbacv1.ClusterRole // a Role has the same fields
		if o.GroupVersionKind().Group == rbacv1.GroupName && o.GetKind() == b.RoleRef.Kind && o.GetName() == b.RoleRef.Name &&
			(b.RoleRef.Kind == "ClusterRole" || o.GetNamespace() == b.Namespace) &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role) == nil {
			return role.Rules, role.AggregationRule == nil
		}
	}
	return nil, false
}
