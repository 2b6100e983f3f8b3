package rbac_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/rbac"
)

const objects = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}],
  aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-admin: "true"}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: part, labels: {to-admin: "true"}},
  rules: [{apiGroups: [example.com], resources: [things, things/status], verbs: ["*"]}, {apiGroups: [apps], resources: ["*/scale"], verbs: [update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: all, namespace: web}, rules: [{apiGroups: [""], resources: [secrets], resourceNames: [tls], verbs: [get, create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: web}, roleRef: {kind: ClusterRole, name: admin}, subjects: [{kind: Group, name: admins}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: web}, roleRef: {kind: Role, name: all}, subjects: [{kind: ServiceAccount, name: app}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: c}, roleRef: {kind: ClusterRole, name: all},
  subjects: [{kind: User, name: root}, {kind: ServiceAccount, name: operator, namespace: system}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: d, namespace: web}, roleRef: {kind: ClusterRole, name: missing}, subjects: [{kind: User, name: lost}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: tls, namespace: web}}`

func TestAllowsWhatRBACAllows(t *testing.T) {
	decoded, err := cluster.Decode([]byte(objects))
	require.NoError(t, err)
	roles, err := rbac.Of(decoded...)
	require.NoError(t, err)
	roles.Bind("shop", "part", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "guest"})

	admins, app := []string{"admins"}, "system:serviceaccount:web:app"
	secret := authorizationv1.ResourceAttributes{Namespace: "web", Verb: "get", Resource: "secrets"}
	thing := authorizationv1.ResourceAttributes{Namespace: "web", Verb: "delete", Group: "example.com", Resource: "things"}
	for name, c := range map[string]struct {
		user   string
		groups []string
		asked  authorizationv1.ResourceAttributes
		change func(*authorizationv1.ResourceAttributes)
		want   bool
	}{
		"a rule of its own":                 {"ann", admins, secret, nil, true},
		"another verb":                      {"ann", admins, secret, func(a *authorizationv1.ResourceAttributes) { a.Verb = "list" }, false},
		"another namespace":                 {"ann", admins, secret, func(a *authorizationv1.ResourceAttributes) { a.Namespace = "shop" }, false},
		"all namespaces":                    {"ann", admins, secret, func(a *authorizationv1.ResourceAttributes) { a.Namespace = "" }, false},
		"nobody's group":                    {"ann", nil, secret, nil, false},
		"a user who is called as the group": {"admins", nil, secret, nil, false},
		"an aggregated rule":                {"ann", admins, thing, nil, true},
		"another group's kind":              {"ann", admins, thing, func(a *authorizationv1.ResourceAttributes) { a.Group = "" }, false},
		"a subresource":                     {"ann", admins, thing, func(a *authorizationv1.ResourceAttributes) { a.Subresource = "status" }, true},
		"a subresource that no rule names":  {"ann", admins, thing, func(a *authorizationv1.ResourceAttributes) { a.Subresource = "scale" }, false},
		"a subresource " +
			"of every kind": {"ann", admins,
			authorizationv1.ResourceAttributes{Namespace: "web", Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"}, nil, true},
		"the kinds of such a " +
			"subresource": {"ann", admins, authorizationv1.ResourceAttributes{Namespace: "web", Verb: "update", Group: "apps", Resource: "deployments"}, nil, false},
		"a named object":                  {app, nil, secret, func(a *authorizationv1.ResourceAttributes) { a.Name = "tls" }, true},
		"another object":                  {app, nil, secret, func(a *authorizationv1.ResourceAttributes) { a.Name = "other" }, false},
		"no object, of a rule with names": {app, nil, secret, func(a *authorizationv1.ResourceAttributes) { a.Verb = "create" }, false},
		"an account elsewhere": {"system:serviceaccount:shop:app", nil, secret, func(a *authorizationv1.ResourceAttributes) {
			a.Name = "tls"
		}, false},
		"a ClusterRole as its Role is called":   {app, nil, thing, nil, false},
		"everything":                            {"root", nil, thing, nil, true},
		"everything, everywhere":                {"root", nil, secret, func(a *authorizationv1.ResourceAttributes) { a.Namespace, a.Subresource = "", "x" }, true},
		"everything, to an account":             {"system:serviceaccount:system:operator", nil, thing, nil, true},
		"a role that is missing":                {"lost", nil, secret, nil, false},
		"a binding that was added":              {"guest", nil, thing, func(a *authorizationv1.ResourceAttributes) { a.Namespace = "shop" }, true},
		"a binding that was added, elsewhere":   {"guest", nil, thing, nil, false},
		"an account without a namespace":        {"system:serviceaccount::app", nil, secret, nil, false},
		"somebody who is bound to nothing here": {"nobody", []string{"system:authenticated"}, secret, nil, false},
	} {
		if c.change != nil {
			c.change(&c.asked)
		}
		require.Equal(t, c.want, roles.May(c.user, c.groups, c.asked), name)
	}
}

func TestRefusesRolesThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"rules": "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: x}",
		"aggregation": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: " +
			"[{matchExpressions: [{key: a, operator: X}]}]}}",
	} {
		decoded, err := cluster.Decode([]byte(text))
		require.NoError(t, err)
		_, err = rbac.Of(decoded...)
		require.Error(t, err, name)
	}
}
