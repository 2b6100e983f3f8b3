package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// leftOver describes a wrong binding to [onboard.RoleNamespaceMaker].
const leftOver = "lets %s, which is not the account of a Tenant with spec.reconciler.createNamespaces, make namespaces"

// platformBy describes a binding that makes a Tenant's account the platform.
const platformBy = "makes %s, of a Tenant's home namespace, the platform, to which no guardrail applies"

// unbind is the command against such a binding.
func unbind(name string) string {
	return "kubectl delete clusterrolebinding " + resource.ShellWord(name)
}

// strangers returns the subjects, other than an account, that a binding lets create
// namespaces. The account may be nil.
func strangers(binding *rbacv1.ClusterRoleBinding, account *rbacv1.Subject) []string {
	var found []string
	for _, s := range binding.Subjects {
		if account != nil && s.Kind == account.Kind && s.Namespace == account.Namespace && s.Name == account.Name {
			continue
		}
		name := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			name = s.Namespace + "/" + s.Name
		}
		found = append(found, s.Kind+" "+name)
	}
	return found
}

// maker returns the account of a Tenant that may create namespaces, or nil.
func maker(tenant *v1beta1.Tenant) *rbacv1.Subject {
	if tenant == nil || tenant.Spec.Reconciler == nil || !tenant.Spec.Reconciler.CreateNamespaces {
		return nil
	}
	return &rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: tenant.Spec.HomeNamespace, Name: onboard.Account(tenant)}
}

// makerOf returns the ClusterRoleBinding of a Tenant's account to [onboard.RoleNamespaceMaker],
// or nil if there is none or it may not be read.
func (e *Engine) makerOf(ctx context.Context, tenant *v1beta1.Tenant) (*rbacv1.ClusterRoleBinding, error) {
	binding := &rbacv1.ClusterRoleBinding{}
	err := e.client.Get(ctx, client.ObjectKey{Name: onboard.NamespaceMaker(tenant.Name)}, binding)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), err == nil && binding.RoleRef.Name != onboard.RoleNamespaceMaker:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for ClusterRoleBinding %s: %w", onboard.NamespaceMaker(tenant.Name), err)
	}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kindClusterRoleBinding))
	return binding, nil
}

// expectMaker reports the binding that only an admin creates if it is missing, has wrong
// subjects, or is no longer needed.
func (e *Engine) expectMaker(ctx context.Context, tenant *v1beta1.Tenant, rendered []*unstructured.Unstructured, report *Report) error {
	binding, err := e.makerOf(ctx, tenant)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rendered, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kindClusterRoleBinding && o.GetName() == onboard.NamespaceMaker(tenant.Name)
	})
	if binding == nil {
		if i >= 0 && !e.options.ClusterBindings {
			report.problem(policy.ReasonAccessDenied, refOf(rendered[i]),
				"spec.reconciler.createNamespaces needs a ClusterRoleBinding, which the operator never makes%s", bindItself(rendered[i]))
		}
		return nil
	}
	if e.options.ClusterBindings && binding.Labels[v1beta1.LabelOwner] == v1beta1.OwnerPlatform {
		return nil // a Tenant's own objects are corrected, or removed, with all others
	}
	if others := strangers(binding, maker(tenant)); len(others) > 0 {
		report.problem(policy.ReasonAccessDenied, refOf(binding), "%s "+leftOver+": "+unbind(binding.Name), refOf(binding),
			strings.Join(others, ", "))
	}
	return nil
}

// makers finds subjects other than Tenants' accounts that may create namespaces, by any role:
// an admin's binding outlives its purpose. Accounts of a Tenant must not be the platform
// either.
func (c *checker) makers(ctx context.Context, name string) error {
	var bindings rbacv1.ClusterRoleBindingList
	if err := c.client.List(ctx, &bindings); err != nil {
		return fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	var roles rbacv1.ClusterRoleList
	if err := c.client.List(ctx, &roles); err != nil {
		return fmt.Errorf("list ClusterRoles: %w", err)
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for i := range roles.Items {
		rules[roles.Items[i].Name] = slices.DeleteFunc(roles.Items[i].Rules, func(r rbacv1.PolicyRule) bool { return len(r.ResourceNames) > 0 })
	}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		if name == "" {
			c.staleReader(binding)
		}
		manages := allows(rules[binding.RoleRef.Name], v1beta1.Group, "tenantlabels", "manage")
		if !manages && binding.RoleRef.Name != onboard.RoleNamespaceMaker &&
			!allows(rules[binding.RoleRef.Name], v1beta1.Group, "tenantlabels", "create") {
			continue
		}
		c.makersBy(binding, manages, name)
	}
	return nil
}

// staleReader finds a binding that outlived its Tenant. The operator may not delete it, and it would let the former team
// read another Tenant of that name.
func (c *checker) staleReader(binding *rbacv1.ClusterRoleBinding) {
	tenant := binding.Labels[v1beta1.LabelTenant]
	if tenant == "" || binding.Labels[v1beta1.LabelOwner] != v1beta1.OwnerPlatform || binding.Name != onboard.TenantReader(tenant) ||
		c.tenants.Named(tenant) != nil {
		return
	}
	c.withoutTenant(policy.ObjectRef{Kind: kindClusterRoleBinding, Name: binding.Name}, tenant,
		"would let the people of Tenant %s, which does not exist, read another Tenant of that name")
}

// makersBy finds the subjects that one binding lets create namespaces, or makes the platform.
func (c *checker) makersBy(binding *rbacv1.ClusterRoleBinding, manages bool, name string) {
	others, text := map[string][]string{}, leftOver
	for _, s := range binding.Subjects {
		tenant := c.tenantOf(binding, s)
		about, account := "", maker(tenant)
		if tenant != nil {
			about = tenant.Name
		}
		if manages { // the platform may, and no account of a Tenant is the platform
			account, text = nil, platformBy
			if homeOf(s) == "" || about == "" {
				continue
			}
		}
		others[about] = append(others[about], strangers(&rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{s}}, account)...)
	}
	for _, about := range slices.Sorted(maps.Keys(others)) {
		if found := others[about]; len(found) > 0 && (name == "" || name == about) {
			c.add(about, resource.Finding{ID: findingLeftoverBinding, Object: policy.ObjectRef{Kind: kindClusterRoleBinding, Name: binding.Name},
				Message: fmt.Sprintf(text, strings.Join(found, ", ")), Command: unbind(binding.Name)})
		}
	}
}

// tenantOf returns the Tenant in whose home namespace an account is, else the one in the binding's
// name, or whose account it has, or nil.
func (c *checker) tenantOf(binding *rbacv1.ClusterRoleBinding, s rbacv1.Subject) *v1beta1.Tenant {
	var named *v1beta1.Tenant
	for _, t := range c.all {
		if home := homeOf(s); home != "" && home == t.Spec.HomeNamespace {
			return t
		}
		if account := maker(t); onboard.NamespaceMaker(t.Name) == binding.Name || account != nil &&
			len(strangers(binding, account)) < len(binding.Subjects) {
			named = t
		}
	}
	return named
}

// homeOf returns the namespace of the accounts that a subject names, in each of RBAC's forms,
// or "".
func homeOf(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Namespace
	}
	if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok && s.Kind == rbacv1.UserKind {
		namespace, _, _ := strings.Cut(rest, ":")
		return namespace
	}
	if namespace, ok := strings.CutPrefix(s.Name, "system:serviceaccounts:"); ok && s.Kind == rbacv1.GroupKind {
		return namespace
	}
	return ""
}

// Findings about permissions in a team's namespaces beyond the team's rules.
const (
	// findingTrustWithinReach: somebody who may not change resources decides what they trust.
	findingTrustWithinReach = "TrustWithinReach"
	// findingNamespaceReach: a role in a namespace may change or delete the namespace itself.
	findingNamespaceReach = "NamespaceReach"
	// findingDefaultAccount: the default account has permissions.
	findingDefaultAccount = "DefaultAccount"
)

// defaultAccount is the account of pods, and of Flux objects, without a serviceAccountName.
const defaultAccount = "default"

// reachOf returns what a RoleBinding permits in its namespace, given the rules of its role.
func reachOf(b *rbacv1.RoleBinding, rules []rbacv1.PolicyRule) []resource.Finding {
	var found []resource.Finding
	if allows(rules, "", "namespaces", "update", "patch", "delete") {
		found = append(found,
			resource.Finding{ID: findingNamespaceReach, Object: policy.ObjectRef{Kind: kindRoleBinding, Namespace: b.Namespace, Name: b.Name},
				Message: b.RoleRef.Name + " may relabel and delete its namespace", Fix: "use landwaiter-reconciler"})
	}
	if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == defaultAccount && cmp.Or(s.Namespace, b.Namespace) == b.Namespace
	}) {
		found = append(found,
			resource.Finding{ID: findingDefaultAccount,
				Object:  policy.ObjectRef{Kind: rbacv1.ServiceAccountKind, Namespace: b.Namespace, Name: defaultAccount},
				Message: fmt.Sprintf("has permissions by RoleBinding %s", b.Name), Why: "Flux falls back to it", Fix: "bind another account"})
	}
	return found
}

// allows reports whether rules permit one of the verbs on a resource, with any name or some names.
func allows(rules []rbacv1.PolicyRule, group, kind string, verbs ...string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.APIGroups, group) && has(r.Resources, kind) &&
			slices.ContainsFunc(verbs, func(verb string) bool { return has(r.Verbs, verb) })
	})
}
