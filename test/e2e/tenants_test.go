//go:build e2e

package e2e

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

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// team makes a Tenant of home and further namespaces, for the length of a test.
func team(t *testing.T, spec string, home string, others ...string) string {
	t.Helper()
	name := "team-" + home
	apply(t, fmt.Sprintf("{apiVersion: landwaiter.dev/v1alpha1, kind: Tenant, metadata: {name: %s}, spec: {home: %s, namespaces: [%s]%s}}", name, home, strings.Join(others, ", "), spec))
	t.Cleanup(func() { release(t, name) })
	return name
}

// release deletes a Tenant.
func release(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}})))
}

// states waits until the status of a Tenant has its namespaces in these states.
func states(t *testing.T, name string, want map[string]v1alpha1.NamespaceState) {
	t.Helper()
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		read := &v1alpha1.Tenant{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, read); err != nil {
			return err
		}
		got := map[string]v1alpha1.NamespaceState{}
		for _, n := range read.Status.Namespaces {
			got[n.Name] = n.State
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("its namespaces are %v, not %v", got, want)
		}
		return nil
	}))
}

func TestRulesOfHomeHoldInEveryMemberAndNowhereElse(t *testing.T) {
	home, one, two, other := namespace(t), namespace(t), namespace(t), namespace(t)
	apply(t, own(home, w.teamA))
	name := team(t, "", home, one, two)
	for _, ns := range []string{home, one, two} {
		admitted(t, ns, w.byTeamA)
		denied(t, ns, w.signed, "VerificationPolicy "+home+"/release")
	}
	denied(t, other, w.byTeamA, "ClusterVerificationPolicy signed")
	condition(t, &v1alpha1.Tenant{}, "", name, metav1.ConditionTrue, "Valid")
	require.Equal(t, "rules of home "+home+" are in force in 3 namespaces", effective(t, &v1alpha1.Tenant{}, "", name, metav1.ConditionTrue, "InForce").Message)
	states(t, name, map[string]v1alpha1.NamespaceState{home: "Home", one: "Member", two: "Member"})

	// A member's own Verifiers override those in home, each kind on its own.
	apply(t, trustStore(two, "keys", w.teamB)+verifier(two, "release", "keys"))
	denied(t, two, w.byTeamA)
	admitted(t, one, w.byTeamA)

	// A change in home is a change in every member that has nothing of its own.
	apply(t, trustStore(home, "keys", w.teamB))
	denied(t, one, w.byTeamA)
	apply(t, trustStore(home, "keys", w.teamA))
	admitted(t, one, w.byTeamA)

	release(t, name)
	denied(t, one, w.byTeamA, "ClusterVerificationPolicy signed")
	admitted(t, one, w.signed)
	admitted(t, home, w.byTeamA) // its own resources stay
}

func TestAHomeThatEndsDeniesInItsMembers(t *testing.T) {
	home, one, other := namespace(t), namespace(t), namespace(t)
	apply(t, own(home, w.teamA))
	name := team(t, "", home, one)
	admitted(t, one, w.byTeamA)
	denied(t, one, w.signed)

	// A finalizer keeps the namespace, so that it is ending for as long as the test looks.
	held := &corev1.Namespace{}
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: home}, held))
	held.Finalizers = []string{"example.com/hold"}
	require.NoError(t, w.Client.Update(within(t), held))
	t.Cleanup(func() { letGo(t, home) })
	require.NoError(t, w.Client.Delete(within(t), held))
	const says = "is being deleted"
	denied(t, one, w.byTeamA, "Tenant "+name, says)
	denied(t, one, w.signed, "Tenant "+name, says) // the cluster's policy, which allows it elsewhere, does not take over
	admitted(t, other, w.signed)
	condition(t, &v1alpha1.Tenant{}, "", name, metav1.ConditionFalse, "ReferenceNotReady")
	states(t, name, map[string]v1alpha1.NamespaceState{home: "Terminating", one: "Member"})

	letGo(t, home)
	condition(t, &v1alpha1.Tenant{}, "", name, metav1.ConditionFalse, "NotFound")
	denied(t, one, w.signed, "home "+home+" of Tenant "+name+" does not exist; create the namespace")
	makeNamespace(t, home)
	admitted(t, one, w.signed) // a home without rules leaves them to the cluster
	condition(t, &v1alpha1.Tenant{}, "", name, metav1.ConditionTrue, "Valid")
}

// letGo ends what keeps a namespace.
func letGo(t *testing.T, name string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
	require.NoError(t, client.IgnoreNotFound(w.Client.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch)))
}

func TestTwoTenantsOneNamespace(t *testing.T) {
	first, second, both := namespace(t), namespace(t), namespace(t)
	apply(t, own(first, w.teamA)+own(second, w.teamB))
	older := team(t, "", first, both)
	admitted(t, both, w.byTeamA)
	younger := team(t, "", second, both)
	require.Contains(t, condition(t, &v1alpha1.Tenant{}, "", younger, metav1.ConditionFalse, "Conflict").Message, "namespace "+both+" belongs to Tenant "+older)
	states(t, younger, map[string]v1alpha1.NamespaceState{second: "Home", both: "Conflict"})
	admitted(t, both, w.byTeamA)
	denied(t, second, w.byTeamA, "VerificationPolicy "+second+"/release") // its other namespaces have its rules
	condition(t, &v1alpha1.Tenant{}, "", older, metav1.ConditionTrue, "Valid")

	release(t, older)
	denied(t, both, w.byTeamA, "VerificationPolicy "+second+"/release") // the release hands over
	condition(t, &v1alpha1.Tenant{}, "", younger, metav1.ConditionTrue, "Valid")
	states(t, younger, map[string]v1alpha1.NamespaceState{second: "Home", both: "Member"})
}

func TestOverlappingPrefixesAreAConflict(t *testing.T) {
	first, second := namespace(t), namespace(t)
	apply(t, own(first, w.teamA)+own(second, w.teamB))
	older := team(t, ", namespacePrefix: "+first+"-", first)
	younger := team(t, ", namespacePrefix: "+first+"-in-", second)
	require.Contains(t, condition(t, &v1alpha1.Tenant{}, "", younger, metav1.ConditionFalse, "Conflict").Message,
		"spec.namespacePrefix "+first+"-in- overlaps with "+first+"- of Tenant "+older)
	inner := first + "-in-a"
	makeNamespace(t, inner) // nobody labelled it, and it has rules at once
	admitted(t, inner, w.byTeamA)
	states(t, older, map[string]v1alpha1.NamespaceState{first: "Home", inner: "Member"})
	states(t, younger, map[string]v1alpha1.NamespaceState{second: "Home"})

	release(t, older)
	denied(t, inner, w.byTeamA, "VerificationPolicy "+second+"/release")
	states(t, younger, map[string]v1alpha1.NamespaceState{second: "Home", inner: "Member"})
}

// private starts a registry that asks for a login, with an image that a key signed. It
// returns the registry's host and the image.
func private(t *testing.T, key *fixture.CosignKey, user, password string) (host, signed string) {
	t.Helper()
	r, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	made, err := r.PushImage(within(t), "shared/base", "v1")
	require.NoError(t, err)
	_, err = r.SignCosign(within(t), made, key, fixture.CosignOptions{})
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
	platform, home, one := namespace(t), namespace(t), namespace(t)
	host, image := private(t, w.teamA, "puller", "secret")
	apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: landwaiter-material, namespace: %[1]s},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landwaiter-material}, subjects: [{kind: ServiceAccount, name: landwaiter, namespace: landwaiter-system}]}
---
{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {name: pull, namespace: %[1]s},
  stringData: {.dockerconfigjson: '{"auths": {"%[2]s": {"username": "puller", "password": "secret"}}}'}}`, platform, host))
	store := fmt.Sprintf(`{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterStore, metadata: {name: private},
  spec: {registries: ["%s"], insecurePlainHTTP: true, imagePullSecrets: [{namespace: %s, name: pull}]}}`, host, platform)
	apply(t, store)
	t.Cleanup(func() { remove(t, store) })
	condition(t, &v1alpha1.ClusterStore{}, "", "private", metav1.ConditionTrue, "Valid")
	apply(t, own(home, w.teamA))
	team(t, "", home, one)
	admitted(t, one, image)

	apply(t, header(home, "Store", "ours")+"spec: {registries: [own.example.com]}")
	condition(t, &v1alpha1.Store{}, home, "ours", metav1.ConditionTrue, "Valid")
	admitted(t, one, image) // cached
	apply(t, trustStore(home, "keys", w.teamB))
	denied(t, one, image)
	apply(t, trustStore(home, "keys", w.teamA))
	apply(t, trustStore(home, "more", w.teamB)+verifier(home, "more", "more")) // a generation that nothing is cached for
	admitted(t, one, image)
	admitted(t, home, image)

	// A Store of the team for that very host is nearer, and has no login.
	apply(t, header(home, "Store", "theirs")+fmt.Sprintf("spec: {registries: ['%s']}", host))
	denied(t, one, image)
	apply(t, header(home, "Store", "theirs")+"spec: {registries: [own.example.com]}")
	admitted(t, one, image)
}
