//go:build e2e

package teams

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// rulesForAll are a mandatory policy, one that decides, and a Store.
const rulesForAll = `
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: read}
spec:
  scope: Mandatory
  rules: [{images: ["registry.example.com/**"], action: Allow}]
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: read-fallback}
spec: {defaultAction: Allow}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: read}
spec:
  registries: [mirrored.example.com]
  imagePullSecrets: [{name: pull}]
`

func TestATeamAdminReadsTheRulesOfTheClusterAndNoOtherTeam(t *testing.T) {
	w := installed(t)
	w.gone(t, "read", "unseen")
	w.add(t, "read", "--set", "namespaces=read-web", "--set", "access.admins=read-admins")
	w.add(t, "unseen", "--set", "namespaces=unseen-web", "--set", "access.admins=unseen-admins")
	for _, text := range strings.Split(rulesForAll, "---") {
		object := suite.Object("%s", text)
		require.NoError(t, w.Apply(suite.Within(t), object))
		t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), object)) })
	}
	program := func(user, group string) suite.Program {
		return suite.Program{Path: w.program.Path, Kubeconfig: suite.Kubeconfig(t, w.Cluster, user, "read-web", group)}
	}
	ada, eve := program("ada", "read-admins"), program("eve", "unseen-admins")
	image := func(host string) string { return host + "/app@sha256:" + strings.Repeat("0", 64) }
	verify := []string{"verify", "--explain", "-n", "read-web"}

	// Each team reads its own Tenant.
	for user, c := range map[string]struct{ group, own, other string }{"ada": {"read-admins", "read", "unseen"}, "eve": {"unseen-admins", "unseen", "read"}} {
		person, err := w.NewClient(w.As(user, c.group))
		require.NoError(t, err)
		require.NoError(t, person.Get(suite.Within(t), client.ObjectKey{Name: c.own}, &v1beta1.Tenant{}))
		require.True(t, apierrors.IsForbidden(person.Get(suite.Within(t), client.ObjectKey{Name: c.other}, &v1beta1.Tenant{})))
		require.True(t, apierrors.IsForbidden(person.List(suite.Within(t), &v1beta1.TenantList{})))
	}

	before := ada.Run(t, "", append(verify, image("registry.example.com"), image("other.example.com"))...)
	require.Equal(t, 2, before.Code, before.Stdout+before.Stderr)
	require.Equal(t, 1, strings.Count(before.Stderr, "landwaiter-cluster-reader"), before.Stderr)
	require.NotContains(t, before.Stderr, "landwaiter-tenant-reader", "it reads its own Tenant, and exceptions only lift denials")
	require.Contains(t, before.Stderr, "kubectl run asked -n read-web --image=IMAGE --dry-run=server")

	bound := binding("", "read-cluster-reader", "landwaiter-cluster-reader", group("read-admins"))
	require.NoError(t, w.Apply(suite.Within(t), bound))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), bound)) })
	var allowed suite.Result
	suite.Eventually(t, func(context.Context) error {
		if allowed = ada.Run(t, "", append(verify, image("registry.example.com"))...); allowed.Code != 0 {
			return fmt.Errorf("exit code %d: %s%s", allowed.Code, allowed.Stdout, allowed.Stderr)
		}
		return nil
	})
	require.Contains(t, allowed.Stdout, "ClusterVerificationPolicy read")
	denied := ada.Run(t, "", append(verify, image("other.example.com"))...)
	require.Equal(t, 1, denied.Code, denied.Stdout+denied.Stderr)
	require.Contains(t, strings.Join(strings.Fields(denied.Stdout), " "), "denied, unless an exception that you cannot read applies")

	policy := "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: own}\nspec: {rules: [{images: ['**'], action: Deny}]}\n"
	preview := ada.Run(t, policy, "preview", "-f", "-", "-n", "read-web")
	require.Equal(t, 0, preview.Code, preview.Stdout+preview.Stderr)
	// A rule of the home namespace applies in the Tenant's other namespaces, too.
	home := ada.Run(t, strings.Replace(policy, "{name: own}", "{name: own, namespace: read}", 1), "preview", "-f", "-", "-n", "read")
	require.Contains(t, home.Stderr, "note: read is the home namespace of a Tenant; its rules also apply in read-web")
	for _, r := range []suite.Result{before, allowed, denied, preview, home} {
		require.NotContains(t, r.Stdout+r.Stderr, "unseen")
	}

	check := ada.Run(t, "", "check", "--tenant", "read", "-n", "read-web")
	require.Equal(t, 2, check.Code, check.Stdout+check.Stderr)
	require.Contains(t, check.Stdout, "not checked: you cannot list Tenants and namespaces:\n    Conflict, Drift, LeftoverBinding, NoTenant\n")
	require.NotContains(t, check.Stdout+check.Stderr, "unseen")
	home = ada.Run(t, "", "check", "--tenant", "read")
	require.Equal(t, 2, home.Code, home.Stdout+home.Stderr)
	require.Contains(t, home.Stdout, "not checked: you cannot list Tenants and namespaces:")
	require.NotZero(t, eve.Run(t, "", "check", "--tenant", "read").Code)
	other := eve.Run(t, "", "check", "--tenant", "read", "-n", "read-web")
	require.NotZero(t, other.Code, other.Stdout+other.Stderr)

	// A Secret that Landwaiter cannot read.
	admin, err := w.NewClient(w.As("ada", "read-admins"))
	require.NoError(t, err)
	for _, text := range []string{"apiVersion: v1\nkind: Secret\nmetadata: {namespace: read-web, name: pull}\ntype: kubernetes.io/dockerconfigjson\nstringData: " +
		"{.dockerconfigjson: '{\"auths\":{}}'}",
		"apiVersion: landwaiter.dev/v1beta1\nkind: Store\nmetadata: {namespace: read-web, name: login}\nspec: {registries: [registry.example.com], " +
			"imagePullSecrets: [{name: pull}]}"} {
		object := suite.Object("%s", text)
		require.NoError(t, admin.Create(suite.Within(t), object))
		t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), object)) })
	}
	w.serve(t)
	suite.Eventually(t, func(context.Context) error {
		r := ada.Run(t, "", append(verify, image("registry.example.com"))...)
		if !strings.Contains(r.Stderr, "Store read-web/login: AccessDenied") ||
			!strings.Contains(r.Stderr, "landwaiter has no permission to read it; grant it with: kubectl create rolebinding") {
			return fmt.Errorf("exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		return nil
	})
}
