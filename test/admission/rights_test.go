//go:build e2e

package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestWhoMayDoWhatWithResources(t *testing.T) {
	w := installed(t)
	all := w.questions(t)
	require.Len(t, all, 2688)
	w.inMemory(t, all)
}

func TestWhoMayDoWhatByEachRole(t *testing.T) {
	w := installed(t)
	w.inMemory(t, w.byRole(t))
}

// The role admin has all of the reader, so its holders may bind it in their namespace; nothing
// of the cluster.
func TestAnAdminOfANamespaceLetsOthersReadItAndNothingElse(t *testing.T) {
	w := installed(t)
	own, other := w.namespace(t), w.namespace(t)
	w.bind(t, own, "admin", "lender")
	lender, err := w.NewClient(w.As("lender"))
	require.NoError(t, err)
	binds := func(namespace, role string) error {
		return lender.Create(suite.Within(t), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "lent-"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "borrower"}}})
	}
	suite.Eventually(t, func(context.Context) error { return binds(own, "landwaiter-reader") })
	require.NoError(t, binds(own, "landwaiter-rules-writer"))
	require.Error(t, binds(other, "landwaiter-reader"))
	for _, role := range []string{"landwaiter-cluster-reader", "landwaiter-tenant-reader", "landwaiter-checker", "landwaiter-cluster-admin",
		"landwaiter-namespace-maker"} {
		require.ErrorContains(t, binds(own, role), "attempting to grant RBAC permissions not currently held", role)
	}
}

func TestProviderReadsNoSecretsBeyondWhatItWasGiven(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	for _, resource := range []string{"secrets", "configmaps", "serviceaccounts"} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			for _, where := range []string{"", ns, "kube-system"} {
				ok, err := w.may(t.Context(), account, authorizationv1.ResourceAttributes{Namespace: where, Verb: verb, Resource: resource})
				require.NoError(t, err)
				require.False(t, ok, "%s %s in %q", verb, resource, where)
			}
		}
	}
	for name, want := range map[string]bool{cluster.GatekeeperSecret: true, "another": false} {
		ok, err := w.may(t.Context(), account,
			authorizationv1.ResourceAttributes{Namespace: cluster.GatekeeperNamespace, Verb: "get", Resource: "secrets", Name: name})
		require.NoError(t, err)
		require.Equal(t, want, ok, name)
	}
	for _, forbidden := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "pods", Namespace: suite.System}, {Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: ns},
		{Verb: "update", Group: "externaldata.gatekeeper.sh", Resource: "providers", Name: "somebody-elses"}, {Verb: "impersonate", Resource: "users"},
	} {
		ok, err := w.may(t.Context(), account, forbidden)
		require.NoError(t, err)
		require.False(t, ok, "%+v", forbidden)
	}
}

// secretKeys is a configuration whose key is in a Secret.
func secretKeys(ns string) string {
	return header(ns, "TrustStore", "keys") + "spec: {type: PublicKeys, source: {secretKeyRef: {name: cosign-pub, key: cosign.pub}}}\n" +
		verifier(ns, "release", "keys") + policy(ns, "release", `{rules: [{images: ["**"], require: [{anyOf: [release]}]}]}`)
}

func TestMissingRightIsAClearConditionAndTheTeamItselfCanGiveIt(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.bind(t, ns, "admin", "team-admin")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cosign-pub"}, Data: map[string][]byte{"cosign.pub": w.teamA.PEM}}
	require.NoError(t, w.Client.Create(suite.Within(t), secret))
	w.apply(t, secretKeys(ns))
	said := w.condition(t, &v1beta1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "AccessDenied")
	command := "kubectl create rolebinding landwaiter-reference-reader --namespace=" + ns +
		" --clusterrole=landwaiter-reference-reader --serviceaccount=landwaiter-system:landwaiter"
	require.Contains(t, said.Message, command)
	w.denied(t, ns, w.byTeamA, "TrustStore "+ns+"/keys")

	// What the command does, done by the team's admin.
	team, err := w.NewClient(w.As("team-admin"))
	require.NoError(t, err)
	require.NoError(t, team.Create(suite.Within(t), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "landwaiter-reference-reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "landwaiter-reference-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: suite.System, Name: "landwaiter"}}}))
	w.admitted(t, ns, w.byTeamA)
	w.condition(t, &v1beta1.TrustStore{}, ns, "keys", metav1.ConditionTrue, "Valid")

	// A change of the Secret is a change of the verdict.
	secret.Data["cosign.pub"] = w.teamB.PEM
	require.NoError(t, w.Client.Update(suite.Within(t), secret))
	w.denied(t, ns, w.byTeamA)
	require.NoError(t, w.Client.Delete(suite.Within(t), secret))
	said = w.condition(t, &v1beta1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "NotFound")
	require.Contains(t, said.Message, "Secret "+ns+"/cosign-pub does not exist")
	w.denied(t, ns, w.byTeamA)
}

func TestTeamAdminCannotReachAnotherTeam(t *testing.T) {
	w := installed(t)
	teamA, teamB := w.namespace(t), w.namespace(t)
	w.bind(t, teamA, "admin", "a-admin")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: teamB, Name: "theirs"}, Data: map[string][]byte{"cosign.pub": w.teamA.PEM}}
	require.NoError(t, w.Client.Create(suite.Within(t), secret))
	team, err := w.NewClient(w.As("a-admin"))
	require.NoError(t, err)
	team = client.WithFieldValidation(team, metav1.FieldValidationStrict) // as kubectl does
	create := func(text string) error {
		objects, err := cluster.Decode([]byte(text))
		require.NoError(t, err)
		return team.Create(suite.Within(t), objects[0])
	}
	suite.Eventually(t, func(context.Context) error { return create(trustStore(teamA, "keys", w.teamA)) })
	for name, text := range map[string]string{
		"create there":            trustStore(teamB, "keys", w.teamA),
		"create for all":          trustStore("", "keys", w.teamA),
		"make a mandatory policy": policy("", "mine", `{scope: Mandatory, defaultAction: Allow}`),
		"refer by namespace": header(teamA, "TrustStore", "x") + "spec: {type: PublicKeys, source: {secretKeyRef: {namespace: " + teamB +
			", name: theirs, key: cosign.pub}}}",
		"pull with theirs": header(teamA, "Store", "x") + "spec: {registries: [r.example.com], imagePullSecrets: [{namespace: " + teamB + ", name: theirs}]}",
		"bring a namespace": header(teamA, "Verifier", "x") + "spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{namespace: " + teamB +
			", name: keys}], insecureIgnoreTransparencyLog: true}}}",
	} {
		require.Error(t, create(text), name)
	}
	// A name that tries to leave the namespace is just a name of nothing.
	for i, name := range []string{"../" + teamB + "/secrets/theirs", teamB + "/theirs", "theirs,metadata.namespace=" + teamB} {
		store := fmt.Sprintf("trick-%d", i)
		require.NoError(t,
			create(header(teamA, "TrustStore", store)+"spec: {type: PublicKeys, source: {secretKeyRef: {name: "+fmt.Sprintf("%q", name)+", key: cosign.pub}}}"))
		w.condition(t, &v1beta1.TrustStore{}, teamA, store, metav1.ConditionFalse, "Invalid")
	}
	for _, list := range []client.ObjectList{&v1beta1.TrustStoreList{}, &corev1.SecretList{}} {
		require.Error(t, team.List(suite.Within(t), list, client.InNamespace(teamB)))
		require.Error(t, team.List(suite.Within(t), list))
	}
}
