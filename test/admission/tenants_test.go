//go:build e2e

package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// team makes a Tenant of the home namespace and further namespaces, for the length of a test.
func (w *world) team(t *testing.T, spec string, home string, others ...string) string {
	t.Helper()
	name := "team-" + home
	w.apply(t, fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: %s}, spec: {homeNamespace: %s, namespaces: [%s]%s}}", name, home,
		strings.Join(others, ", "), spec))
	t.Cleanup(func() { w.release(t, name) })
	return name
}

// release deletes a Tenant.
func (w *world) release(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}})))
}

// states waits until the status of a Tenant has its namespaces in these states.
func (w *world) states(t *testing.T, name string, want map[string]v1beta1.NamespaceState) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		read := &v1beta1.Tenant{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, read); err != nil {
			return err
		}
		got := map[string]v1beta1.NamespaceState{}
		for _, n := range read.Status.Namespaces {
			got[n.Name] = n.State
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("its namespaces are %v, not %v", got, want)
		}
		return nil
	})
}

func TestRulesOfHomeHoldInEveryMemberAndNowhereElse(t *testing.T) {
	w := installed(t)
	home, one, two, other := w.namespace(t), w.namespace(t), w.namespace(t), w.namespace(t)
	w.apply(t, own(home, w.teamA))
	name := w.team(t, "", home, one, two)
	for _, ns := range []string{home, one, two} {
		w.admitted(t, ns, w.byTeamA)
		w.denied(t, ns, w.signed, "VerificationPolicy "+home+"/release")
	}
	w.denied(t, other, w.byTeamA, "ClusterVerificationPolicy signed")
	w.condition(t, &v1beta1.Tenant{}, "", name, metav1.ConditionTrue, "Valid")
	require.Equal(t, "rules of the home namespace "+home+" are in force in 3 namespaces",
		w.effective(t, &v1beta1.Tenant{}, "", name, metav1.ConditionTrue, "InForce").Message)
	w.states(t, name, map[string]v1beta1.NamespaceState{home: "Home", one: "Active", two: "Active"})

	// A member's own Verifiers override those in the home namespace, each kind on its own.
	w.apply(t, trustStore(two, "keys", w.teamB)+verifier(two, "release", "keys"))
	w.denied(t, two, w.byTeamA)
	w.admitted(t, one, w.byTeamA)

	// A change in the home namespace is a change in every tenant namespace that has nothing of its own.
	w.apply(t, trustStore(home, "keys", w.teamB))
	w.denied(t, one, w.byTeamA)
	w.apply(t, trustStore(home, "keys", w.teamA))
	w.admitted(t, one, w.byTeamA)

	w.release(t, name)
	w.denied(t, one, w.byTeamA, "ClusterVerificationPolicy signed")
	w.admitted(t, one, w.signed)
	w.admitted(t, home, w.byTeamA) // its own resources stay
}

func TestAHomeThatEndsDeniesInItsMembers(t *testing.T) {
	w := installed(t)
	home, one, other := w.namespace(t), w.namespace(t), w.namespace(t)
	w.apply(t, own(home, w.teamA))
	name := w.team(t, "", home, one)
	w.admitted(t, one, w.byTeamA)
	w.denied(t, one, w.signed)

	// A finalizer keeps the namespace, so that it is ending for as long as the test looks.
	held := &corev1.Namespace{}
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: home}, held))
	held.Finalizers = []string{"example.com/hold"}
	require.NoError(t, w.Client.Update(suite.Within(t), held))
	t.Cleanup(func() { w.letGo(t, home) })
	require.NoError(t, w.Client.Delete(suite.Within(t), held))
	const says = "is being deleted"
	w.denied(t, one, w.byTeamA, "Tenant "+name, says)
	w.denied(t, one, w.signed, "Tenant "+name, says) // the cluster's policy, which allows it elsewhere, does not take over
	w.admitted(t, other, w.signed)
	w.condition(t, &v1beta1.Tenant{}, "", name, metav1.ConditionFalse, "ReferenceNotReady")
	w.states(t, name, map[string]v1beta1.NamespaceState{home: "Terminating", one: "Active"})

	w.letGo(t, home)
	w.condition(t, &v1beta1.Tenant{}, "", name, metav1.ConditionFalse, "NotFound")
	w.denied(t, one, w.signed, "the home namespace "+home+" of Tenant "+name+" does not exist; create the namespace")
	w.makeNamespace(t, home)
	w.admitted(t, one, w.signed) // a home namespace without rules leaves them to the cluster
	w.condition(t, &v1beta1.Tenant{}, "", name, metav1.ConditionTrue, "Valid")
}

// letGo ends what keeps a namespace.
func (w *world) letGo(t *testing.T, name string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
	require.NoError(t, client.IgnoreNotFound(w.Client.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch)))
}

func TestTwoTenantsOneNamespace(t *testing.T) {
	w := installed(t)
	first, second, both := w.namespace(t), w.namespace(t), w.namespace(t)
	w.apply(t, own(first, w.teamA)+own(second, w.teamB))
	older := w.team(t, "", first, both)
	w.admitted(t, both, w.byTeamA)
	younger := w.team(t, "", second, both)
	require.Contains(t, w.condition(t, &v1beta1.Tenant{}, "", younger, metav1.ConditionFalse, "Conflict").Message, "namespace "+both+" belongs to Tenant "+older)
	w.states(t, younger, map[string]v1beta1.NamespaceState{second: "Home", both: "Conflict"})
	w.admitted(t, both, w.byTeamA)
	w.denied(t, second, w.byTeamA, "VerificationPolicy "+second+"/release") // its other namespaces have its rules
	w.condition(t, &v1beta1.Tenant{}, "", older, metav1.ConditionTrue, "Valid")

	w.release(t, older)
	w.denied(t, both, w.byTeamA, "VerificationPolicy "+second+"/release") // the release hands over
	w.condition(t, &v1beta1.Tenant{}, "", younger, metav1.ConditionTrue, "Valid")
	w.states(t, younger, map[string]v1beta1.NamespaceState{second: "Home", both: "Active"})
}

func TestOverlappingPrefixesAreAConflict(t *testing.T) {
	w := installed(t)
	first, second := w.namespace(t), w.namespace(t)
	w.apply(t, own(first, w.teamA)+own(second, w.teamB))
	older := w.team(t, ", namespacePrefix: "+first+"-", first)
	younger := w.team(t, ", namespacePrefix: "+first+"-in-", second)
	require.Contains(t, w.condition(t, &v1beta1.Tenant{}, "", younger, metav1.ConditionFalse, "Conflict").Message,
		"spec.namespacePrefix: "+first+"-in- overlaps with "+first+"- of Tenant "+older)
	inner := first + "-in-a"
	w.makeNamespace(t, inner) // nobody labelled it, and it has rules at once
	w.admitted(t, inner, w.byTeamA)
	w.states(t, older, map[string]v1beta1.NamespaceState{first: "Home", inner: "Active"})
	w.states(t, younger, map[string]v1beta1.NamespaceState{second: "Home"})

	w.release(t, older)
	w.denied(t, inner, w.byTeamA, "VerificationPolicy "+second+"/release")
	w.states(t, younger, map[string]v1beta1.NamespaceState{second: "Home", inner: "Active"})
}

// private starts a registry that asks for a login, with an image that a key signed. It
// returns the registry's host and the image.
func private(t *testing.T, key *fixture.CosignKey, user, password string) (host, signed string) {
	t.Helper()
	r, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	made, err := r.PushImage(suite.Within(t), "shared/base", "v1")
	require.NoError(t, err)
	_, err = r.SignCosign(suite.Within(t), made, key, fixture.CosignOptions{})
	require.NoError(t, err)
	r.SetIntercept(func(answer http.ResponseWriter, request *http.Request) bool {
		if name, secret, ok := request.BasicAuth(); ok && name == user && secret == password {
			return false
		}
		answer.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		answer.WriteHeader(http.StatusUnauthorized)
		return true
	})
	return r.Host(), r.Host() + "/shared/base:v1"
}

func TestATeamsStoreLeavesTheClustersLogins(t *testing.T) {
	w := installed(t)
	home, one := w.namespace(t), w.namespace(t)
	host, image := private(t, w.teamA, "puller", "secret")
	w.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {name: pull, namespace: landwaiter-system},
  stringData: {.dockerconfigjson: '{"auths": {"%s": {"username": "puller", "password": "secret"}}}'}}`, host))
	store := fmt.Sprintf(`{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: private},
  spec: {registries: ["%s"], insecurePlainHTTP: true, imagePullSecrets: [{name: pull}]}}`, host)
	w.during(t, store)
	w.condition(t, &v1beta1.ClusterStore{}, "", "private", metav1.ConditionTrue, "Valid")
	w.apply(t, own(home, w.teamA))
	w.team(t, "", home, one)
	w.admitted(t, one, image)

	w.apply(t, header(home, "Store", "ours")+"spec: {registries: [own.example.com]}")
	w.condition(t, &v1beta1.Store{}, home, "ours", metav1.ConditionTrue, "Valid")
	w.admitted(t, one, image) // cached
	w.apply(t, trustStore(home, "keys", w.teamB))
	w.denied(t, one, image)
	w.apply(t, trustStore(home, "keys", w.teamA))
	w.apply(t, trustStore(home, "more", w.teamB)+verifier(home, "more", "more")) // a generation that nothing is cached for
	w.admitted(t, one, image)
	w.admitted(t, home, image)

	// A Store of the team for that very host is nearer, and has no login.
	w.apply(t, header(home, "Store", "theirs")+fmt.Sprintf("spec: {registries: ['%s']}", host))
	w.denied(t, one, image)
	w.apply(t, header(home, "Store", "theirs")+"spec: {registries: [own.example.com]}")
	w.admitted(t, one, image)
}
