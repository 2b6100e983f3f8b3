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

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The roles that the API server has are read once, and answer the table in memory. The
// server is asked too, for each person and each kind of question once.
func TestWhoMayDoWhatWithResources(t *testing.T) {
	w := installed(t)
	all := w.questions(t)
	require.Len(t, all, 2688)
	roles, err := rbac.Read(suite.Within(t), w.Client)
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, q := range all {
		require.Equal(t, q.want, roles.May(q.user, everybody(), q.asked), "%+v", q)
		kind := fmt.Sprint(q.user, q.asked.Namespace == "", q.asked.Subresource, q.want)
		if !asked[kind] {
			asked[kind] = true
			w.answers(t, q)
		}
	}
	t.Logf("%d questions, %d for the server", len(all), len(asked))
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
		ok, err := w.may(t.Context(), account, authorizationv1.ResourceAttributes{Namespace: cluster.GatekeeperNamespace, Verb: "get", Resource: "secrets", Name: name})
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
	said := w.condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "AccessDenied")
	command := "kubectl create rolebinding landwaiter-material --namespace=" + ns + " --clusterrole=landwaiter-material --serviceaccount=landwaiter-system:landwaiter"
	require.Contains(t, said.Message, command)
	w.denied(t, ns, w.byTeamA, "TrustStore "+ns+"/keys")

	// What the command does, done by the team's admin.
	team, err := w.NewClient(w.As("team-admin"))
	require.NoError(t, err)
	require.NoError(t, team.Create(suite.Within(t), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "landwaiter-material"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "landwaiter-material"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: suite.System, Name: "landwaiter"}}}))
	w.admitted(t, ns, w.byTeamA)
	w.condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionTrue, "Valid")

	// A change of the Secret is a change of the verdict.
	secret.Data["cosign.pub"] = w.teamB.PEM
	require.NoError(t, w.Client.Update(suite.Within(t), secret))
	w.denied(t, ns, w.byTeamA)
	require.NoError(t, w.Client.Delete(suite.Within(t), secret))
	said = w.condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "NotFound")
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
		"create there":       trustStore(teamB, "keys", w.teamA),
		"create for all":     trustStore("", "keys", w.teamA),
		"make a floor":       policy("", "mine", `{scope: Floor, defaultAction: Allow}`),
		"refer by namespace": header(teamA, "TrustStore", "x") + "spec: {type: PublicKeys, source: {secretKeyRef: {namespace: " + teamB + ", name: theirs, key: cosign.pub}}}",
		"pull with theirs":   header(teamA, "Store", "x") + "spec: {registries: [r.example.com], imagePullSecrets: [{namespace: " + teamB + ", name: theirs}]}",
		"bring a namespace":  header(teamA, "Verifier", "x") + "spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{namespace: " + teamB + ", name: keys}], insecureIgnoreTransparencyLog: true}}}",
	} {
		require.Error(t, create(text), name)
	}
	// A name that tries to leave the namespace is just a name of nothing.
	for i, name := range []string{"../" + teamB + "/secrets/theirs", teamB + "/theirs", "theirs,metadata.namespace=" + teamB} {
		store := fmt.Sprintf("trick-%d", i)
		require.NoError(t, create(header(teamA, "TrustStore", store)+"spec: {type: PublicKeys, source: {secretKeyRef: {name: "+fmt.Sprintf("%q", name)+", key: cosign.pub}}}"))
		w.condition(t, &v1alpha1.TrustStore{}, teamA, store, metav1.ConditionFalse, "Invalid")
	}
	for _, list := range []client.ObjectList{&v1alpha1.TrustStoreList{}, &corev1.SecretList{}} {
		require.Error(t, team.List(suite.Within(t), list, client.InNamespace(teamB)))
		require.Error(t, team.List(suite.Within(t), list))
	}
}
