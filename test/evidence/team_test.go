//go:build !e2e && !nightly

package evidence

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// team makes a Tenant whose home namespace has the Tenant's name, and the Namespace.
func team(name string, namespaces ...string) func(*resource.Objects) {
	return func(o *resource.Objects) {
		tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: name, Namespaces: namespaces, NamespacePrefix: name + "-dev-"}}
		tenant.Name = name
		home := corev1.Namespace{}
		home.Name = name
		o.Resources, o.Namespaces = append(o.Resources, tenant), append(o.Namespaces, home)
	}
}

func TestWhatATeamTrustsHoldsInItsNamespacesAndInNoOthers(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	irises, roses := e.signed(t, "iris/app", "iris"), e.signed(t, "rose/app", "rose")
	both := []func(*resource.Objects){team("iris", "iris-web"), team("rose"), e.trusting(t, "iris", "iris"), e.policy(t, "iris", "p", releaseNeeded),
		e.trusting(t, "rose", "rose"), e.policy(t, "rose", "p", releaseNeeded)}
	require.Empty(t, e.apply(t, both...))
	for _, ns := range []verify.Namespace{"iris", "iris-web", "iris-dev-1"} {
		result := e.Verify(t.Context(), ns, digestOf(irises))
		requireOutcome(t, policy.Allowed, result.Verdict)
		require.False(t, result.Cached, "verdicts are kept for each namespace")
		require.True(t, e.Verify(t.Context(), ns, digestOf(irises)).Cached)
		requireOutcome(t, policy.Denied, e.outcome(t, ns, roses))
	}
	for _, ns := range []verify.Namespace{"rose", "iris-development", "nobody", verify.Cluster} {
		requireOutcome(t, policy.Denied, e.outcome(t, ns, irises))
	}

	// Another key in the home namespace is in force in every member at once, and the other team's results stay.
	requireOutcome(t, policy.Allowed, e.outcome(t, "rose", roses))
	require.Empty(t, e.apply(t, append(both[:2:2], e.trusting(t, "iris", "rose"), e.policy(t, "iris", "p", releaseNeeded), both[4], both[5])...))
	for _, ns := range []verify.Namespace{"iris", "iris-web", "iris-dev-1"} {
		requireOutcome(t, policy.Denied, e.outcome(t, ns, irises))
		requireOutcome(t, policy.Allowed, e.outcome(t, ns, roses))
	}
	require.True(t, e.Verify(t.Context(), "rose", digestOf(roses)).Cached)

	// A lax policy of the cluster says nothing while the home namespace is gone.
	problems := e.apply(t, func(o *resource.Objects) { team("iris", "iris-web")(o); o.Namespaces = nil }, e.policy(t, "", "lax", "defaultAction: Allow"))
	require.Len(t, problems, 1)
	got := e.outcome(t, "iris-web", roses)
	requireOutcome(t, policy.Denied, got)
	require.Equal(t, "the home namespace iris of Tenant iris does not exist; create the namespace", got.Reason)
	requireOutcome(t, policy.Allowed, e.outcome(t, "rose", irises))
}

func TestALoginInHomeWorksForItsMembersAndNoOthers(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "iris/app", "iris")
	var refused atomic.Int64
	e.registry.SetIntercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "iris" && password == "of-home" {
			return false
		}
		refused.Add(1)
		rw.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	login := func(o *resource.Objects) {
		pull := corev1.Secret{
			StringData: map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths": {%q: {"username": "iris", "password": "of-home"}}}`, e.registry.Host())}}
		pull.Name, pull.Namespace = "pull", "iris"
		store := &v1beta1.Store{Spec: v1beta1.StoreSpec{Registries: []string{e.registry.Host()}, ImagePullSecrets: []v1beta1.Reference{{Name: "pull"}}}}
		store.Name, store.Namespace = "registry", "iris"
		o.Secrets, o.Resources = append(o.Secrets, pull), append(o.Resources, store)
	}
	require.Empty(t, e.apply(t, team("iris", "iris-web"), team("rose"), login, e.trusting(t, "", "iris"), e.policy(t, "", "p", releaseNeeded)))
	for _, ns := range []verify.Namespace{"iris", "iris-web", "iris-dev-1"} {
		requireOutcome(t, policy.Allowed, e.outcome(t, ns, img))
	}
	for _, ns := range []verify.Namespace{"rose", "rose-dev-1", "nobody", verify.Cluster} {
		requireOutcome(t, policy.Denied, e.outcome(t, ns, img))
	}
	require.Positive(t, refused.Load())
}
