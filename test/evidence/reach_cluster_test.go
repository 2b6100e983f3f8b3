//go:build e2e

package evidence

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestPullSecretsOfAServiceAccountWithRealRights(t *testing.T) {
	w := connected(t)
	s, a, b, c := w.server, w.namespace(t, "team-a"), w.namespace(t, "team-b"), w.namespace(t, "team-c")
	apply := func(text string) { suite.Apply(t, w.Cluster, text) }
	key, authority := newKey(t), newAuthority(t, "corp")
	r := startRegistry(t, key, authority, nil)
	login(r.Registry, "builder", "pass-a")
	account := func(pull string) string {
		return "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder, namespace: " + a + "}\nimagePullSecrets: [{name: " + pull + "}]\n"
	}
	own := func(namespace string) string {
		return trusting(namespace, key) + store(namespace, "own", []string{r.host}, authority, "imagePullSecretsFrom: {serviceAccount: {name: builder}}")
	}
	t.Cleanup(func() {
		require.NoError(t, w.Client.Delete(context.Background(), suite.Resource("ClusterStore", "", "corp", "{}")))
	})
	apply(store("", "corp", []string{r.host}, authority) + own(a) + own(b) + account("pull") +
		pullSecret(a, "pull", r.host, "builder", "pass-a") + pullSecret(a, "stale", r.host, "builder", "pass-b"))
	image := r.host + r.image

	s.requireVerdict(t, gatekeeper.Denied, a, image, "ServiceAccount "+a+"/builder cannot be read",
		"kubectl create rolebinding landwaiter-reference-reader --namespace="+a)
	w.becomes(t, "Store", a, "own", "False", "kubectl create rolebinding landwaiter-reference-reader --namespace="+a+
		" --clusterrole=landwaiter-reference-reader --serviceaccount="+suite.System+":landwaiter")
	apply(grant(a))
	s.requireVerdict(t, gatekeeper.Allowed, a, image)
	w.becomes(t, "Store", a, "own", "True", "")

	apply(account("stale")) // what the account names counts at once
	s.requireVerdict(t, gatekeeper.Denied, a, image, "refuses access")
	apply(account("pull"))
	s.requireVerdict(t, gatekeeper.Allowed, a, image)
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder", Namespace: a}}))
	s.requireVerdict(t, gatekeeper.Denied, a, image, "ServiceAccount "+a+"/builder does not exist")

	// Another team names the same account, and gets its own namespace's, which it lacks.
	apply(account("pull") + grant(b))
	s.requireVerdict(t, gatekeeper.Allowed, a, image)
	s.requireVerdict(t, gatekeeper.Denied, b, image, "ServiceAccount "+b+"/builder does not exist")

	// A cluster admin may have one for all, in Landwaiter's namespace.
	apply(fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder, namespace: %s}\nimagePullSecrets: [{name: pull}]\n", suite.System) +
		pullSecret(suite.System, "pull", r.host, "builder", "pass-a") +
		trusting(c, key) + store("", "corp", []string{r.host}, authority, "imagePullSecretsFrom: {serviceAccount: {name: builder}}"))
	s.requireVerdict(t, gatekeeper.Allowed, c, image)
	require.NotContains(t, s.Tail(1000), "pass-")

	for name, refused := range map[string]struct{ text, says string }{
		"a pattern in a Store": {store(a, "x", []string{"*.example.com"}, nil), "only a ClusterStore can list registries by pattern"},
		"another namespace's account": {store(b, "x", []string{"a.example.com"}, nil, "imagePullSecretsFrom: {serviceAccount: {namespace: team-a, name: builder}}"),
			`unknown field "spec.imagePullSecretsFrom.serviceAccount.namespace"`},
		"a proxy in a Store":    {store(a, "x", []string{"a.example.com"}, nil, "proxy: {url: 'http://proxy:3128'}"), "only a ClusterStore can have a proxy"},
		"a pattern without TLS": {store("", "x", []string{"*.example.com"}, nil, "insecurePlainHTTP: true"), "cannot be used with patterns"},
		"a proxy without TLS": {store("", "x", []string{"a.example.com"}, nil, "insecurePlainHTTP: true", "proxy: {url: 'http://proxy:3128'}"),
			"proxies open tunnels for TLS only"},
		"a password in the URL": {store("", "x", []string{"a.example.com"}, nil, "proxy: {url: 'http://u:p@proxy:3128'}"), "spec.proxy.url"},
		"a Secret and no proxy": {store("", "x", []string{"a.example.com"}, nil, "proxy: {secretRef: {name: b}}"), "spec.proxy.url is missing"},
		"two logins": {store(a, "x", []string{"a.example.com"}, nil, "imagePullSecrets: [{name: a}]",
			"imagePullSecretsFrom: {serviceAccount: {name: builder}}"), "at most one of the fields in [identity imagePullSecrets imagePullSecretsFrom] may be set"},
	} {
		objects, err := cluster.Decode([]byte(refused.text))
		require.NoError(t, err)
		err = w.Client.Create(t.Context(), objects[0], client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll)
		require.Error(t, err, name)
		require.True(t, strings.Contains(err.Error(), refused.says), "%s: %v", name, err)
	}
}
