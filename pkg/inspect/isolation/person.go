package isolation

import (
	"cmp"
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// role is a person's relation to a team.
type role string

const (
	roleAdmin     role = "admin"
	roleDeveloper role = "developer"
	roleViewer    role = "viewer"
	roleAccount   role = "Git account"
	// roleAsked is a person named on the command line.
	roleAsked role = "person"
	// roleBound has a RoleBinding in the team's namespaces that the Tenant does not mention.
	roleBound role = "bound"
	// roleSystem is an account of Kubernetes or of Landwaiter.
	roleSystem role = "account"
)

// members are the roles of a team.
func members() []role {
	return []role{roleAdmin, roleDeveloper, roleViewer, roleAccount, roleAsked, roleBound}
}

// person is an identity to act as.
type person struct {
	role   role
	user   string
	groups []string
	source string // the binding of a bound person
}

// String names a person in results.
func (p person) String() string {
	text := string(p.role) + " "
	switch {
	case strings.HasPrefix(p.user, "system:serviceaccount:"):
		text += "ServiceAccount " + strings.Replace(strings.TrimPrefix(p.user, "system:serviceaccount:"), ":", "/", 1)
	case p.user == probeName && len(p.groups) > 0:
		text += "Group " + strings.Join(p.groups, ", ")
	default:
		text += "User " + p.user
	}
	if p.source != "" {
		text += " (" + p.source + ")"
	}
	return shown(text)
}

// account is a ServiceAccount as the API server sees it.
func account(of role, name types.NamespacedName) person {
	return person{role: of, user: "system:serviceaccount:" + name.Namespace + ":" + name.Name,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + name.Namespace, "system:authenticated"}}
}

// subject is a subject of a Tenant or a binding.
func subject(of role, kind, namespace, name string) person {
	switch kind {
	case rbacv1.ServiceAccountKind:
		return account(of, types.NamespacedName{Namespace: namespace, Name: name})
	case rbacv1.GroupKind:
		return person{role: of, user: probeName, groups: []string{name}}
	}
	return person{role: of, user: name}
}

// same reports whether two subjects are equal.
func (p person) same(other person) bool {
	return p.user == other.user && slices.Equal(p.groups, other.groups)
}

// people returns the people to impersonate for a team's cases: those that the Tenant names,
// its account, and others who are bound in its namespaces. left is the number of further
// ones.
func people(tenant *v1beta1.Tenant, bindings []rbacv1.RoleBinding) (all []person, left int) {
	add := func(p person) {
		if !slices.ContainsFunc(all, p.same) {
			all = append(all, p)
		}
	}
	spec := tenant.Spec
	for _, list := range []struct {
		role     role
		subjects []v1beta1.TenantSubject
	}{{roleAdmin, spec.Access.Admins}, {roleDeveloper, spec.Access.Developers}, {roleViewer, spec.Access.Viewers}} {
		for _, s := range list.subjects {
			add(subject(list.role, string(s.Kind), s.Namespace, s.Name))
		}
	}
	if spec.Reconciler != nil {
		add(account(roleAccount, types.NamespacedName{Namespace: spec.HomeNamespace, Name: cmp.Or(spec.Reconciler.ServiceAccount, tenant.Name)}))
	}
	for i := range bindings {
		b := &bindings[i]
		// Subjects of Landwaiter and of Kubernetes are not members of the team.
		if b.RoleRef.Kind != "ClusterRole" || !slices.Contains([]string{"admin", "edit", "view"}, b.RoleRef.Name) {
			continue
		}
		for _, s := range b.Subjects {
			if strings.HasPrefix(s.Name, "system:") {
				continue
			}
			p := subject(roleBound, s.Kind, s.Namespace, s.Name)
			p.source = "by RoleBinding " + b.Namespace + "/" + b.Name
			add(p)
		}
	}
	left = max(0, len(all)-maxPeople)
	return all[:len(all)-left], left
}

// ownMembers are the namespaces of a pair's team without the home namespace, unless there is no other
// one.
func (p pair) ownMembers() []string {
	if p.team.alone() {
		return p.own
	}
	return slices.DeleteFunc(slices.Clone(p.own), func(n string) bool { return n == p.team.home })
}

// differing returns the namespaces of a team in which to try cases: the home namespace and one more,
// and each other one in which somebody's permissions differ from those in the namespace like.
func (s *scene) differing(ctx context.Context, people []person, of *team, like string) (chosen []string, left int) {
	chosen = of.namespaces()
	for _, namespace := range of.members[min(1, len(of.members)):] {
		for _, who := range people {
			there, usual := s.api.rules(ctx, who, namespace), s.api.rules(ctx, who, like)
			if !there.all || there.text() != usual.text() {
				chosen = append(chosen, namespace)
				break
			}
		}
	}
	left = max(0, len(chosen)-maxNamespaces)
	return chosen[:len(chosen)-left], left
}
