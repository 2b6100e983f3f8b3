//go:build e2e

package teams

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// shownRules are a mandatory policy, and an exception for two teams.
const shownRules = `
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: shown}
spec:
  scope: Mandatory
  rules: [{images: ["registry.example.com/**"], action: Allow}]
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: shown-fallback}
spec: {defaultAction: Allow}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: shown}
spec:
  registries: [unseen.example.com]
  imagePullSecrets: [{name: unseen}]
`

func TestATeamAdminExplainsByTheRulesThatLandwaiterShows(t *testing.T) {
	w := installed(t)
	w.gone(t, "shown", "unseen")
	w.add(t, "shown", "--set", "namespaces=shown-web", "--set", "access.admins=shown-admins")
	w.add(t, "unseen", "--set", "namespaces=unseen-web", "--set", "access.admins=unseen-admins")
	for _, text := range strings.Split(shownRules, "---") {
		object := suite.Object("%s", text)
		require.NoError(t, w.Apply(suite.Within(t), object))
		t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), object)) })
	}
	program := func(user, group string) suite.Program {
		return suite.Program{Path: w.program.Path, Kubeconfig: suite.Kubeconfig(t, w.Cluster, user, "shown-web", group)}
	}
	ada, eve := program("ada", "shown-admins"), program("eve", "unseen-admins")
	image := func(host string) string { return host + "/app@sha256:" + strings.Repeat("0", 64) }
	explain := []string{"verify", "--explain", "-n", "shown-web"}

	before := ada.Run(t, "", append(explain, image("registry.example.com"))...)
	require.Equal(t, 2, before.Code, before.Stdout+before.Stderr)
	require.Contains(t, before.Stdout, "landwaiter-tenant-reader")
	require.Contains(t, before.Stdout, "--show-effective-rules")

	// Somebody makes it first, so that nothing can be applied to it.
	immutable := true
	for _, forged := range []*corev1.ConfigMap{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shown-web", Name: resource.ShownName}, Data: map[string]string{resource.ShownKey: "{}"}, Immutable: &immutable},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "unseen-web", Name: resource.ShownName}, BinaryData: map[string][]byte{"x": {1}}},
	} {
		require.NoError(t, w.Client.Create(suite.Within(t), forged))
	}
	ignored := ada.Run(t, "", append(explain, image("registry.example.com"))...)
	require.Equal(t, 2, ignored.Code, ignored.Stdout+ignored.Stderr)
	unchecked := ada.Run(t, "", "check", "--tenant", "shown", "-n", "shown-web")
	for _, said := range []string{ignored.Stdout, unchecked.Stderr} {
		require.Contains(t, strings.Join(strings.Fields(said), " "), "it is not Landwaiter's: it has no label landwaiter.dev/owner=platform")
	}

	w.serve(t)
	shown := &corev1.ConfigMap{}
	suite.Eventually(t, func(ctx context.Context) error {
		for _, namespace := range []string{"shown", "unseen-web", "shown-web"} {
			if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: resource.ShownName}, shown); err != nil {
				return err
			}
			if !strings.Contains(shown.Data[resource.ShownKey], `"shown-fallback"`) {
				return fmt.Errorf("namespace %s is shown %s", namespace, shown.Data[resource.ShownKey])
			}
		}
		return nil
	})
	require.NotContains(t, shown.Data[resource.ShownKey], "unseen")

	allowed := ada.Run(t, "", append(explain, image("registry.example.com"))...)
	require.Equal(t, 0, allowed.Code, allowed.Stdout+allowed.Stderr)
	require.Contains(t, allowed.Stderr, "the cluster's rules come from ConfigMap landwaiter-effective-rules of namespace shown-web, as of 20")
	require.Contains(t, allowed.Stdout, "ClusterVerificationPolicy shown")
	denied := ada.Run(t, "", append(explain, image("other.example.com"))...)
	require.Equal(t, 1, denied.Code, denied.Stdout+denied.Stderr)
	require.NotContains(t, allowed.Stdout+allowed.Stderr+denied.Stdout+denied.Stderr, "unseen")

	policy := "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: own}\nspec: {rules: [{images: ['**'], action: Deny}]}\n"
	preview := ada.Run(t, policy, "preview", "-f", "-", "-n", "shown-web")
	require.Equal(t, 0, preview.Code, preview.Stdout+preview.Stderr)
	require.NotContains(t, preview.Stdout+preview.Stderr, "unseen")

	// A rule of the home namespace holds in the Tenant's other namespaces, so these are judged.
	home := ada.Run(t, strings.Replace(policy, "{name: own}", "{name: own, namespace: shown}", 1), "preview", "-f", "-", "-n", "shown")
	require.Contains(t, home.Stderr, "note: shown is the home namespace of a Tenant; its rules also apply in shown-web")
	require.NotContains(t, home.Stdout+home.Stderr, "unseen")

	// What the server may not read, nobody judges with.
	admin, err := w.NewClient(w.As("ada", "shown-admins"))
	require.NoError(t, err)
	for _, text := range []string{"apiVersion: v1\nkind: Secret\nmetadata: {namespace: shown-web, name: pull}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\":{}}'}",
		"apiVersion: landwaiter.dev/v1beta1\nkind: Store\nmetadata: {namespace: shown-web, name: login}\nspec: {registries: [registry.example.com], imagePullSecrets: [{name: pull}]}"} {
		object := suite.Object("%s", text)
		require.NoError(t, admin.Create(suite.Within(t), object))
		t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), object)) })
	}
	suite.Eventually(t, func(context.Context) error {
		r := ada.Run(t, "", append(explain, image("registry.example.com"))...)
		if !strings.Contains(r.Stderr, "Store shown-web/login: AccessDenied") || !strings.Contains(r.Stderr, "landwaiter has no permission to read it; grant it with: kubectl create rolebinding") {
			return fmt.Errorf("exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		return nil
	})

	check := ada.Run(t, "", "check", "--tenant", "shown", "-n", "shown-web")
	require.Equal(t, 2, check.Code, check.Stdout+check.Stderr)
	require.Contains(t, check.Stdout, "0 findings")
	require.Contains(t, check.Stdout, "not checked: you cannot list Tenants and namespaces:\n    Conflict, Drift, LeftoverBinding, NoTenant\n")
	require.Contains(t, check.Stdout, "GuardrailMissing")
	require.NotContains(t, check.Stdout, "NoDefaultDeny")
	require.NotContains(t, check.Stdout+check.Stderr, "unseen")
	denied = eve.Run(t, "", "check", "--tenant", "shown", "-n", "shown-web")
	require.Equal(t, 2, denied.Code, denied.Stdout+denied.Stderr)
	require.Contains(t, denied.Stderr, "--show-effective-rules")

	other := eve.Run(t, "", append(explain, image("registry.example.com"))...)
	require.Equal(t, 2, other.Code, other.Stdout+other.Stderr)
	require.NotContains(t, other.Stderr, "rules come from ConfigMap")

	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"rules.json":"{}"}}`))
	for _, c := range []struct {
		who    persona
		policy string // "" for permissions
	}{{persona{"ada", []string{"shown-admins"}}, "platform-objects"}, {persona{"eve", []string{"unseen-admins"}}, ""}} {
		person, err := w.NewClient(w.As(c.who.user, c.who.groups...))
		require.NoError(t, err)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shown-web", Name: resource.ShownName}}
		for _, err := range []error{person.Patch(suite.Within(t), object.DeepCopy(), patch), person.Delete(suite.Within(t), object.DeepCopy())} {
			require.True(t, apierrors.IsForbidden(err), "%s: %v", c.who.user, err)
			require.True(t, c.policy == "" || refusedBy(err, c.policy), "%s: %v", c.who.user, err)
		}
		if c.policy == "" {
			require.True(t, apierrors.IsForbidden(person.Get(suite.Within(t), client.ObjectKeyFromObject(object), object)))
		}
	}
}
