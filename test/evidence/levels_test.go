//go:build !e2e && !nightly

package evidence

import (
	"fmt"
	"net/http"
	"strings"
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

// The namespace's rules win, the cluster's are the fallback, and without either there is
// nothing that could allow an image.
func TestTheNamespacesRulesWinTheClustersFillInAndWithoutEitherNothingIsAllowed(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	ofTeam, ofCluster, ofBoth := e.signed(t, "app/team", "team"), e.signed(t, "app/cluster", "cluster"), e.signed(t, "app/both", "team", "cluster")
	none := func(*resource.Objects) {}
	team := []func(*resource.Objects){e.trusting(t, "team-a", "team"), e.policy(t, "team-a", "p", releaseNeeded)}
	cluster := []func(*resource.Objects){e.trusting(t, "", "cluster"), e.policy(t, "", "p", releaseNeeded)}
	const allowed, denied = policy.Allowed, policy.Denied
	for name, c := range map[string]struct {
		rules               []func(*resource.Objects)
		team, cluster, both policy.Outcome
		decides             string
	}{
		"the namespace's alone": {team, allowed, denied, allowed, "VerificationPolicy"},
		"the cluster's alone":   {cluster, denied, allowed, allowed, "ClusterVerificationPolicy"},
		"both":                  {append(append([]func(*resource.Objects){}, team...), cluster...), allowed, denied, allowed, "VerificationPolicy"},
		"neither":               {[]func(*resource.Objects){none}, denied, denied, denied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, e.apply(t, c.rules...))
			for want, img := range map[*policy.Outcome]fixture.Image{&c.team: ofTeam, &c.cluster: ofCluster, &c.both: ofBoth} {
				got := e.outcome(t, "team-a", img)
				requireOutcome(t, *want, got)
				require.Equal(t, c.decides, got.Policy.Kind)
				require.NotEmpty(t, got.Reason)
			}
		})
	}
}

// What one team may read and another may not must not come out of anything that both use:
// not the verdict, not the evidence, not a token.
func TestAnotherTeamsPrivateDigestOpensNothing(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "team-a/private", "shared")
	var asOther atomic.Int64
	e.registry.SetIntercept(func(rw http.ResponseWriter, r *http.Request) bool {
		user, _, _ := r.BasicAuth()
		if user == "team-a" || !strings.HasPrefix(r.URL.Path, "/v2/team-a/") {
			return false
		}
		if user == "team-b" {
			asOther.Add(1)
		}
		rw.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	login := func(namespace string) func(o *resource.Objects) {
		return func(o *resource.Objects) {
			pull := corev1.Secret{
				StringData: map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths": {%q: {"username": %q, "password": "x"}}}`, e.registry.Host(), namespace)}}
			pull.Name, pull.Namespace = "pull", namespace
			store := &v1beta1.Store{Spec: v1beta1.StoreSpec{Registries: []string{e.registry.Host()}, ImagePullSecrets: []v1beta1.Reference{{Name: "pull"}}}}
			store.Name, store.Namespace = "registry", namespace
			o.Secrets, o.Resources = append(o.Secrets, pull), append(o.Resources, store)
		}
	}
	// The rules are the same, so that nothing but the login differs.
	require.Empty(t, e.apply(t, login("team-a"), login("team-b"), e.trusting(t, "", "shared"), e.policy(t, "", "p", releaseNeeded)))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
	for _, namespace := range []verify.Namespace{"team-b", "nobody", verify.Cluster} {
		for range 2 {
			got := e.outcome(t, namespace, img)
			requireOutcome(t, policy.Denied, got)
			require.NotContains(t, got.Reason, "team-a/registry", "another team's resources are not shown")
		}
	}
	require.Positive(t, asOther.Load(), "the registry was asked with the other team's own login")
	require.True(t, e.Verify(t.Context(), "team-a", digestOf(img)).Cached, "team-a's verdict was there all the time")
}
