//go:build e2e

package teams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// token returns the configuration of somebody who has the token of an account, not of an
// administrator who impersonates it.
func (w *arena) token(t *testing.T, namespace, name string) *rest.Config {
	t.Helper()
	clients, err := kubernetes.NewForConfig(w.Config)
	require.NoError(t, err)
	request, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(suite.Within(t), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := rest.CopyConfig(w.Config)
	config.BearerToken = request.Status.Token
	return config
}

// secretsOfHome asks for them as somebody who impersonates an account.
func (w *arena) secretsOfHome(ctx context.Context, t *testing.T, config *rest.Config, account string) error {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account}
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = clients.CoreV1().Secrets("iris-green").List(ctx, metav1.ListOptions{})
	return err
}

// Anyone who may edit a namespace may act as every account in it. That is why a Tenant's
// account is in the home namespace, where developers have no permissions.
func TestADeveloperCannotActAsTheAccountOfHome(t *testing.T) {
	w := attacked(t)
	for _, object := range []*unstructured.Unstructured{
		suite.Object("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: iris-green-web, name: dan}}"),
		suite.Object("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: iris-green-web, name: deployer}}"),
		binding("iris-green-web", "dan", "edit", serviceAccount("iris-green-web", "dan")),
	} {
		require.NoError(t, w.Apply(suite.Within(t), object))
	}
	dan := w.token(t, "iris-green-web", "dan")
	require.ErrorContains(t, w.secretsOfHome(suite.Within(t), t, dan, green().user), `User "system:serviceaccount:iris-green-web:dan" cannot impersonate`)
	require.ErrorContains(t, w.secretsOfHome(suite.Within(t), t, dan, accountOf("iris-green-web", "deployer").user),
		`User "system:serviceaccount:iris-green-web:deployer" cannot list`, "accounts of a tenant namespace can be impersonated")

	// With permissions in the home namespace he is the account.
	inHome := binding("iris-green", "dan", "edit", serviceAccount("iris-green-web", "dan"))
	require.NoError(t, w.Apply(suite.Within(t), inHome))
	suite.Eventually(t, func(ctx context.Context) error { return w.secretsOfHome(ctx, t, dan, green().user) })
	require.NoError(t, w.Client.Delete(suite.Within(t), inHome))
}

// The trust of a team is what a developer must not change.
func TestADeveloperCannotOverwriteTheTrustOfTheTeam(t *testing.T) {
	w := attacked(t)
	overwrite := change("Secret", "iris-green", "keys", `{"stringData":{"cosign.pub":"evil"}}`)
	require.ErrorContains(t, overwrite(suite.Within(t), w.as(t, greenDev())), "cannot patch resource")
	require.ErrorContains(t, change("Verifier", "iris-green", "release", `{"spec":{"type":"Notation"}}`)(suite.Within(t), w.as(t, greenDev())),
		"cannot patch resource")
	require.ErrorContains(t, change("Verifier", "iris-green-web", "release", `{"spec":{"type":"Notation"}}`)(suite.Within(t), w.as(t, greenDev())),
		"cannot patch resource")
	require.Error(t, w.as(t, greenDev()).Get(suite.Within(t), client.ObjectKey{Namespace: "iris-green", Name: "keys"}, &corev1.Secret{}))

	// The same key in a tenant namespace is within reach.
	require.NoError(t, change("Secret", "iris-green-web", "keys", `{"stringData":{"cosign.pub":"evil"}}`)(suite.Within(t), w.as(t, greenDev())))
	inHome := binding("iris-green", "devs", "edit", group("green-devs"))
	require.NoError(t, w.Apply(suite.Within(t), inHome))
	suite.Eventually(t, func(ctx context.Context) error { return overwrite(ctx, w.as(t, greenDev())) })
	require.NoError(t, w.Client.Delete(suite.Within(t), inHome))
}

// What neither a Tenant's account nor the operator's has. Kubernetes itself refuses it, so
// it also holds without guardrails.
func TestAccountsCannotGiveThemselvesMore(t *testing.T) {
	w := attacked(t)
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: iris-green-web, name: x}, rules: [{apiGroups: ['%s'], resources: " +
		"[%s], verbs: [%s]}]}"
	const eve = "{kind: User, name: eve}"
	exec := func(ctx context.Context, c client.Client) error {
		return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "iris-green-web", Name: "default"}},
			&authenticationv1.TokenRequest{}, client.DryRunAll)
	}
	for name, a := range map[string]struct {
		who  persona
		says string
		try  request
	}{
		"the account binds edit":                   {green(), "attempting to grant", create(roleBinding, "iris-green-web", "edit", eve)},
		"the account binds admin":                  {green(), "attempting to grant", create(roleBinding, "iris-green-web", "admin", eve)},
		"the account makes a role for quotas":      {green(), "attempting to grant", create(role, "", "resourcequotas", "delete")},
		"the account makes a role to impersonate":  {green(), "attempting to grant", create(role, "", "serviceaccounts", "impersonate")},
		"the account makes a role to run commands": {green(), "attempting to grant", create(role, "", "pods/exec", "create")},
		"the account takes the token of another":   {green(), "cannot create resource", exec},
		"the account changes a quota of nobody": {green(), "cannot create resource",
			create("{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: iris-green-web, name: x}, spec: {}}")},
		"a team admin binds cluster-admin": {greenAdmin(), "attempting to grant", create(roleBinding, "iris-green-web", "cluster-admin", eve)},
		"a team admin makes a Tenant": {greenAdmin(), "cannot create resource",
			create("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: x}, spec: {homeNamespace: x}}")},
		"the operator binds cluster-admin": {operator(), "attempting to grant", create(roleBinding, "iris-green-web", "cluster-admin", eve)},
		"the operator reads a Secret": {operator(), "cannot get resource", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: "iris-green", Name: "keys"}, &corev1.Secret{})
		}},
		"the operator takes a token": {operator(), "cannot create resource", exec},
		"the operator makes a ClusterRoleBinding": {operator(), "cannot create resource", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, binding("", "x", "view", user("eve")))
		}},
		"the operator makes a role": {operator(), "cannot create resource", create(role, "", "pods", "get")},
		"the operator runs a pod":   {operator(), "cannot create resource", create("%s", pod("iris-green-web"))},
		"the operator takes its guardrail away": {operator(), "cannot delete resource", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, w.bindingOf("landwaiter-operator-guardrail"))
		}},
		"who makes namespaces takes the guardrail away": {green(), "cannot delete resource", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, w.bindingOf("landwaiter-namespace-names"))
		}},
		"the admin of Landwaiter's kinds binds roles": {persona{"clara", []string{"platform"}}, "cannot create resource",
			create(roleBinding, "iris-green-web", "view", eve)},
	} {
		require.ErrorContains(t, a.try(suite.Within(t), w.as(t, a.who)), a.says, name)
	}
}
