package operator

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Findings about how somebody gets further in a team's namespaces than the team's rules say.
const (
	// findingTrustWithinReach: who may not change resources decides what they trust.
	findingTrustWithinReach = "TrustWithinReach"
	// findingNamespaceReach: a role in a namespace may change or delete the namespace itself.
	findingNamespaceReach = "NamespaceReach"
	// findingDefaultAccount: the account that tools fall back to has permissions.
	findingDefaultAccount = "DefaultAccount"
)

// defaultAccount is what pods, and Flux without a serviceAccountName, run as.
const defaultAccount = "default"

// reachOf returns what a RoleBinding lets happen in its namespace, given what its role allows.
func reachOf(b *rbacv1.RoleBinding, rules []rbacv1.PolicyRule) []Finding {
	var found []Finding
	if allows(rules, "", "namespaces", "update", "patch", "delete") {
		found = append(found, Finding{Finding: findingNamespaceReach, Where: policy.ObjectRef{Kind: kindRoleBinding, Namespace: b.Namespace, Name: b.Name},
			Fix: b.RoleRef.Name + " may relabel and delete its namespace: use landwaiter-reconciler"})
	}
	if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == defaultAccount && cmp.Or(s.Namespace, b.Namespace) == b.Namespace
	}) {
		found = append(found, Finding{Finding: findingDefaultAccount, Where: policy.ObjectRef{Kind: rbacv1.ServiceAccountKind, Namespace: b.Namespace, Name: defaultAccount},
			Fix: fmt.Sprintf("has permissions by RoleBinding %s: Flux falls back to it; bind another account", b.Name)})
	}
	return found
}

// allows reports whether rules let somebody use one of the verbs on a resource, of any name or of some.
func allows(rules []rbacv1.PolicyRule, group, resource string, verbs ...string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.APIGroups, group) && has(r.Resources, resource) && slices.ContainsFunc(verbs, func(verb string) bool { return has(r.Verbs, verb) })
	})
}
