//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

const account = "system:serviceaccount:" + stack.Namespace + ":landwaiter"

// bind gives a user a ClusterRole, in a namespace or (empty) everywhere.
func bind(t *testing.T, namespace, role, user string) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	name := metav1.ObjectMeta{Name: fmt.Sprintf("e2e-%d", w.names.Add(1)), Namespace: namespace}
	var object client.Object = &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: to}
	if namespace == "" {
		object = &rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: to}
	}
	require.NoError(t, w.Client.Create(within(t), object))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete binding: %v", err)
		}
	})
}

// may asks the API server what a user may do.
func may(ctx context.Context, user string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: &attributes}}
	err := w.Client.Create(ctx, review)
	return review.Status.Allowed, err
}

func TestWhoMayDoWhatWithResources(t *testing.T) {
	own, other := namespace(t), namespace(t)
	bind(t, own, "admin", "team-admin")
	bind(t, own, "edit", "editor")
	bind(t, own, "view", "onlooker")
	bind(t, own, "landwaiter-viewer", "viewer")
	bind(t, "", "landwaiter-cluster-viewer", "cluster-viewer")
	bind(t, "", "landwaiter-cluster-admin", "platform-admin")

	read := []string{"get", "list", "watch"}
	write := []string{"create", "update", "patch", "delete", "deletecollection"}
	namespaced := []string{"verifiers", "stores", "truststores", "verificationpolicies", "exceptions"}
	clusterWide := []string{"clusterverifiers", "clusterstores", "clustertruststores", "clusterverificationpolicies", "clusterexceptions", "clusterquotas"}
	// What is not listed here must be refused.
	type scope struct{ where, kinds string }
	granted := map[string]map[scope][]string{
		"team-admin":     {{own, "namespaced"}: append(slices.Clone(read), write...)},
		"editor":         {},
		"onlooker":       {},
		"viewer":         {{own, "namespaced"}: read},
		"cluster-viewer": {{"", "cluster-wide"}: read},
		"platform-admin": {
			{own, "namespaced"}: append(slices.Clone(read), write...), {other, "namespaced"}: append(slices.Clone(read), write...),
			{"", "namespaced"}: append(slices.Clone(read), write...), {"", "cluster-wide"}: append(slices.Clone(read), write...),
		},
		"stranger": {},
		account:    {{own, "namespaced"}: read, {other, "namespaced"}: read, {"", "namespaced"}: read, {"", "cluster-wide"}: read},
	}
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { // roles are aggregated by a controller
		ok, err := may(ctx, "team-admin", authorizationv1.ResourceAttributes{Namespace: own, Verb: "create", Group: v1alpha1.Group, Resource: "verifiers"})
		if !ok {
			err = errors.Join(err, errors.New("the role admin has not been aggregated"))
		}
		return err
	}))
	asked := 0
	check := func(user, where, group, resource, subresource, verb string, want bool) {
		got, err := may(t.Context(), user, authorizationv1.ResourceAttributes{Namespace: where, Verb: verb, Group: group, Resource: resource, Subresource: subresource})
		require.NoError(t, err)
		require.Equal(t, want, got, "%s: %s %s/%s in %q", user, verb, resource, subresource, where)
		asked++
	}
	for user, grants := range granted {
		for _, verb := range append(slices.Clone(read), write...) {
			for _, where := range []string{own, other, ""} {
				for _, resource := range namespaced {
					check(user, where, v1alpha1.Group, resource, "", verb, slices.Contains(grants[scope{where, "namespaced"}], verb))
					writesStatus := user == account && (verb == "update" || verb == "patch")
					check(user, where, v1alpha1.Group, resource, "status", verb, writesStatus)
				}
			}
			for _, resource := range clusterWide {
				check(user, "", v1alpha1.Group, resource, "", verb, slices.Contains(grants[scope{"", "cluster-wide"}], verb))
				check(user, "", v1alpha1.Group, resource, "status", verb, user == account && (verb == "update" || verb == "patch"))
			}
		}
	}
	t.Logf("%d questions", asked)
}

func TestProviderReadsNoSecretsBeyondWhatItWasGiven(t *testing.T) {
	ns := namespace(t)
	for _, resource := range []string{"secrets", "configmaps", "serviceaccounts"} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			for _, where := range []string{"", ns, "kube-system"} {
				ok, err := may(t.Context(), account, authorizationv1.ResourceAttributes{Namespace: where, Verb: verb, Resource: resource})
				require.NoError(t, err)
				require.False(t, ok, "%s %s in %q", verb, resource, where)
			}
		}
	}
	for name, want := range map[string]bool{cluster.GatekeeperSecret: true, "another": false} {
		ok, err := may(t.Context(), account, authorizationv1.ResourceAttributes{Namespace: cluster.GatekeeperNamespace, Verb: "get", Resource: "secrets", Name: name})
		require.NoError(t, err)
		require.Equal(t, want, ok, name)
	}
	for _, forbidden := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "pods", Namespace: stack.Namespace}, {Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: ns},
		{Verb: "update", Group: "externaldata.gatekeeper.sh", Resource: "providers", Name: "somebody-elses"}, {Verb: "impersonate", Resource: "users"},
	} {
		ok, err := may(t.Context(), account, forbidden)
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
	ns := namespace(t)
	bind(t, ns, "admin", "team-admin")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cosign-pub"}, Data: map[string][]byte{"cosign.pub": w.teamA.PEM}}
	require.NoError(t, w.Client.Create(within(t), secret))
	apply(t, secretKeys(ns))
	said := condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "AccessDenied")
	command := "kubectl create rolebinding landwaiter-material --namespace=" + ns + " --clusterrole=landwaiter-material --serviceaccount=landwaiter-system:landwaiter"
	require.Contains(t, said.Message, command)
	denied(t, ns, w.byTeamA, "TrustStore "+ns+"/keys")

	// What the command does, done by the team's admin.
	team, err := w.NewClient(w.As("team-admin"))
	require.NoError(t, err)
	require.NoError(t, team.Create(within(t), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "landwaiter-material"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "landwaiter-material"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: stack.Namespace, Name: "landwaiter"}}}))
	admitted(t, ns, w.byTeamA)
	condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionTrue, "Valid")

	// A change of the Secret is a change of the verdict.
	secret.Data["cosign.pub"] = w.teamB.PEM
	require.NoError(t, w.Client.Update(within(t), secret))
	denied(t, ns, w.byTeamA)
	require.NoError(t, w.Client.Delete(within(t), secret))
	said = condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "NotFound")
	require.Contains(t, said.Message, "Secret "+ns+"/cosign-pub does not exist")
	denied(t, ns, w.byTeamA)
}

func TestTeamAdminCannotReachAnotherTeam(t *testing.T) {
	teamA, teamB := namespace(t), namespace(t)
	bind(t, teamA, "admin", "a-admin")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: teamB, Name: "theirs"}, Data: map[string][]byte{"cosign.pub": w.teamA.PEM}}
	require.NoError(t, w.Client.Create(within(t), secret))
	team, err := w.NewClient(w.As("a-admin"))
	require.NoError(t, err)
	team = client.WithFieldValidation(team, metav1.FieldValidationStrict) // as kubectl does
	create := func(text string) error {
		objects, err := cluster.Decode([]byte(text))
		require.NoError(t, err)
		return team.Create(within(t), objects[0])
	}
	require.NoError(t, cluster.Until(within(t), func(context.Context) error { return create(trustStore(teamA, "keys", w.teamA)) }))
	for name, text := range map[string]string{
		"create there":       trustStore(teamB, "keys", w.teamA),
		"create for all":     trustStore("", "keys", w.teamA),
		"make a floor":       policy("", "mine", `{scope: Floor, defaultAction: Allow}`),
		"refer by namespace": header(teamA, "TrustStore", "x") + "spec: {type: PublicKeys, source: {secretKeyRef: {namespace: " + teamB + ", name: theirs, key: cosign.pub}}}",
		"pull with theirs":   header(teamA, "Store", "x") + "spec: {registries: [r.example.com], imagePullSecrets: [{namespace: " + teamB + ", name: theirs}]}",
		"bring a namespace":  header(teamA, "Verifier", "x") + "spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{namespace: " + teamB + ", name: keys}]}}}",
	} {
		require.Error(t, create(text), name)
	}
	// A name that tries to leave the namespace is just a name of nothing.
	for i, name := range []string{"../" + teamB + "/secrets/theirs", teamB + "/theirs", "theirs,metadata.namespace=" + teamB} {
		store := fmt.Sprintf("trick-%d", i)
		require.NoError(t, create(header(teamA, "TrustStore", store)+"spec: {type: PublicKeys, source: {secretKeyRef: {name: "+fmt.Sprintf("%q", name)+", key: cosign.pub}}}"))
		condition(t, &v1alpha1.TrustStore{}, teamA, store, metav1.ConditionFalse, "Invalid")
	}
	for _, list := range []client.ObjectList{&v1alpha1.TrustStoreList{}, &corev1.SecretList{}} {
		require.Error(t, team.List(within(t), list, client.InNamespace(teamB)))
		require.Error(t, team.List(within(t), list))
	}
}
