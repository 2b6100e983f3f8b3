// Package rbac answers what Kubernetes' RBAC allows, from roles and bindings alone, as a
// chart renders them or as an API server has them. It is for tables of permissions that would
// take an API server a request for each cell.
package rbac

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Roles are roles, and who is bound to them.
type Roles struct {
	rules    map[role][]rbacv1.PolicyRule
	bindings []rbacv1.RoleBinding // in no namespace if they hold everywhere
}

// role names a Role or, without a namespace, a ClusterRole.
type role struct{ namespace, name string }

// Of returns the roles and bindings among objects, and ignores other kinds. A ClusterRole
// with an aggregation rule also has the rules of the ClusterRoles that it selects.
func Of(objects ...*unstructured.Unstructured) (*Roles, error) {
	r := &Roles{rules: map[role][]rbacv1.PolicyRule{}}
	var all []rbacv1.ClusterRole
	for _, object := range objects {
		if object.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		var err error
		switch convert := runtime.DefaultUnstructuredConverter; object.GetKind() {
		case "ClusterRole", "Role":
			var made rbacv1.ClusterRole
			err = convert.FromUnstructured(object.Object, &made)
			r.rules[role{made.Namespace, made.Name}] = made.Rules
			all = append(all, made)
		case "ClusterRoleBinding", "RoleBinding":
			var made rbacv1.RoleBinding
			err = convert.FromUnstructured(object.Object, &made)
			r.bindings = append(r.bindings, made)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, into := range all {
		if into.AggregationRule == nil {
			continue
		}
		for _, by := range into.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&by)
			if err != nil {
				return nil, fmt.Errorf("read ClusterRole %s: %w", into.Name, err)
			}
			for _, from := range all {
				if from.Namespace == "" && selector.Matches(labels.Set(from.Labels)) {
					r.rules[role{name: into.Name}] = append(r.rules[role{name: into.Name}], from.Rules...)
				}
			}
		}
	}
	return r, nil
}

// Read returns the roles and bindings that an API server has.
func Read(ctx context.Context, c client.Reader) (*Roles, error) {
	var objects []*unstructured.Unstructured
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	return Of(objects...)
}

// Bind binds a subject to a ClusterRole, in a namespace or (empty) everywhere.
func (r *Roles) Bind(namespace, clusterRole string, subject rbacv1.Subject) {
	r.bindings = append(r.bindings, rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}, Subjects: []rbacv1.Subject{subject}})
}

// May reports whether a user, who is in groups, may do something. Groups that authentication
// adds, such as system:authenticated, are the caller's to name.
func (r *Roles) May(user string, groups []string, asked authorizationv1.ResourceAttributes) bool {
	return slices.ContainsFunc(r.bindings, func(b rbacv1.RoleBinding) bool {
		if b.Namespace != "" && b.Namespace != asked.Namespace ||
			!slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return isOf(s, b.Namespace, user, groups) }) {
			return false
		}
		bound := role{name: b.RoleRef.Name}
		if b.RoleRef.Kind == "Role" {
			bound.namespace = b.Namespace
		}
		return slices.ContainsFunc(r.rules[bound], func(rule rbacv1.PolicyRule) bool { return allows(rule, asked) })
	})
}

// isOf reports whether the subject of a binding is a user or one of the user's groups.
func isOf(s rbacv1.Subject, namespace, user string, groups []string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == user
	case rbacv1.GroupKind:
		return slices.Contains(groups, s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && user == "system:serviceaccount:"+namespace+":"+s.Name
	}
	return false
}

// allows follows k8s.io/component-helpers/auth/rbac/validation.
func allows(rule rbacv1.PolicyRule, asked authorizationv1.ResourceAttributes) bool {
	resource, anyOne := asked.Resource, ""
	if asked.Subresource != "" {
		resource, anyOne = resource+"/"+asked.Subresource, "*/"+asked.Subresource
	}
	has := func(list []string, values ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(values, s) })
	}
	return has(rule.Verbs, asked.Verb) && has(rule.APIGroups, asked.Group) &&
		(has(rule.Resources, resource) || anyOne != "" && slices.Contains(rule.Resources, anyOne)) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, asked.Name))
}
