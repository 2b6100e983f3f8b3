//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// needing is a policy whose every image needs what require says.
func needing(require string) string {
	return `{rules: [{images: ["**"], require: [` + require + `]}]}`
}

func TestPolicyThatNamesAVerifierThatDoesNotExistIsNotReady(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA)+policy(ns, "release", needing("{anyOf: [later]}")))
	said := condition(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "NotFound")
	require.Contains(t, said.Message, "names Verifier later, which does not exist")
	effective(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Denies")
	denied(t, ns, w.byTeamA, "VerificationPolicy "+ns+"/release")

	apply(t, verifier(ns, "later", "keys"))
	condition(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Valid")
	effective(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "InForce")
	admitted(t, ns, w.byTeamA)
}

func TestPolicyBecomesReadyWhenItsVerifierIsRepaired(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA)+header(ns, "TrustStore", "keys")+"spec: {type: PublicKeys, source: {inline: no key}}\n")
	said := condition(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "ReferenceNotReady")
	require.Contains(t, said.Message, "Verifier "+ns+"/release cannot be used")
	condition(t, &v1alpha1.Verifier{}, ns, "release", metav1.ConditionFalse, "ReferenceNotReady")
	condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "Invalid")

	apply(t, trustStore(ns, "keys", w.teamA))
	condition(t, &v1alpha1.TrustStore{}, ns, "keys", metav1.ConditionTrue, "Valid")
	condition(t, &v1alpha1.Verifier{}, ns, "release", metav1.ConditionTrue, "Valid")
	condition(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Valid")
}

func TestPolicyThatNoImageCanMeetIsReadyAndNotEffective(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA)+policy(ns, "release", needing("{anyOf: [release], atLeast: 5}")))
	condition(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Valid")
	said := effective(t, &v1alpha1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "Unsatisfiable")
	require.Contains(t, said.Message, "asks for 5 different signers")
	denied(t, ns, w.byTeamA, "VerificationPolicy "+ns+"/release")
}

func TestFirstVerifierOfANamespaceSaysWhatNoLongerAppliesThere(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "platform-signature", "keys"))
	said := effective(t, &v1alpha1.Verifier{}, ns, "platform-signature", metav1.ConditionTrue, "InForce")
	require.Contains(t, said.Message, "these no longer apply there: ClusterVerifier platform-signature")
	denied(t, ns, w.signed) // which is true: the cluster's policy now asks for the team's key
	admitted(t, ns, w.byTeamA)
}

func TestFloorThatWarnsSaysThatItOnlyWarns(t *testing.T) {
	floor := policy("", "e2e-only-warns", `{scope: Floor, enforcementAction: Warn, defaultAction: Allow}`)
	apply(t, floor)
	t.Cleanup(func() { remove(t, floor) })
	condition(t, &v1alpha1.ClusterVerificationPolicy{}, "", "e2e-only-warns", metav1.ConditionTrue, "Valid")
	said := effective(t, &v1alpha1.ClusterVerificationPolicy{}, "", "e2e-only-warns", metav1.ConditionTrue, "OnlyWarns")
	require.Contains(t, said.Message, "a floor that only warns")
}

func TestClusterPolicyThatEveryNamespaceOverridesSaysSo(t *testing.T) {
	effective(t, &v1alpha1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "InForce")
	ns := namespace(t) // the last one that has nothing of its own
	made := map[string]*v1alpha1.VerificationPolicy{}
	t.Cleanup(func() {
		for _, object := range made {
			require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
		}
	})
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		var namespaces corev1.NamespaceList
		if err := w.Client.List(ctx, &namespaces); err != nil {
			return err
		}
		for _, namespace := range namespaces.Items {
			if namespace.Name == ns || made[namespace.Name] != nil {
				continue
			}
			if namespace.Status.Phase == corev1.NamespaceTerminating {
				return errors.New(namespace.Name + " is still being deleted")
			}
			object := &v1alpha1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "e2e-overriding"}}
			if err := w.Client.Create(ctx, object); err != nil {
				return err
			}
			made[namespace.Name] = object
		}
		return nil
	}))
	effective(t, &v1alpha1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "InForce")
	apply(t, policy(ns, "e2e-overriding", "{enforcementAction: Warn}"))
	condition(t, &v1alpha1.VerificationPolicy{}, ns, "e2e-overriding", metav1.ConditionTrue, "Valid")
	effective(t, &v1alpha1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "InForce")
	apply(t, policy(ns, "e2e-overriding", "{enforcementAction: Deny}"))
	said := effective(t, &v1alpha1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionFalse, "Overridden")
	require.Contains(t, said.Message, "every namespace has a VerificationPolicy of its own")
	condition(t, &v1alpha1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "Valid")
}
