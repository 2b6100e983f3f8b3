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
	if slices.ContainsFunc(rules, changesNamespaces) {
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

// changesNamespaces reports whether a rule lets somebody change or delete a namespace.
func changesNamespaces(r rbacv1.PolicyRule) bool {
	allows := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return allows(r.APIGroups, "") && allows(r.Resources, "namespaces") && (allows(r.Verbs, "update") || allows(r.Verbs, "patch") || allows(r.Verbs, "delete"))
}
