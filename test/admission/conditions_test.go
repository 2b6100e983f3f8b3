//go:build e2e

package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// needing is a policy whose every image needs what require says.
func needing(require string) string {
	return `{rules: [{images: ["**"], require: [` + require + `]}]}`
}

func TestPolicyThatNamesAVerifierThatDoesNotExistIsNotReady(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA)+policy(ns, "release", needing("{anyOf: [later]}")))
	said := w.condition(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "NotFound")
	require.Contains(t, said.Message, "names Verifier later, which does not exist")
	w.effective(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "Denies")
	w.denied(t, ns, w.byTeamA, "VerificationPolicy "+ns+"/release")

	w.apply(t, verifier(ns, "later", "keys"))
	w.condition(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Valid")
	w.effective(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "InForce")
	w.admitted(t, ns, w.byTeamA)
}

func TestPolicyBecomesReadyWhenItsVerifierIsRepaired(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA)+header(ns, "TrustStore", "keys")+"spec: {type: PublicKeys, source: {inline: no key}}\n")
	said := w.condition(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "ReferenceNotReady")
	require.Contains(t, said.Message, "Verifier "+ns+"/release cannot be used")
	w.condition(t, &v1beta1.Verifier{}, ns, "release", metav1.ConditionFalse, "ReferenceNotReady")
	w.condition(t, &v1beta1.TrustStore{}, ns, "keys", metav1.ConditionFalse, "Invalid")

	w.apply(t, trustStore(ns, "keys", w.teamA))
	w.condition(t, &v1beta1.TrustStore{}, ns, "keys", metav1.ConditionTrue, "Valid")
	w.condition(t, &v1beta1.Verifier{}, ns, "release", metav1.ConditionTrue, "Valid")
	w.condition(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Valid")
}

func TestPolicyThatNoImageCanMeetIsReadyAndNotEffective(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamA)+policy(ns, "release", needing("{anyOf: [release], atLeast: 5}")))
	w.condition(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionTrue, "Valid")
	said := w.effective(t, &v1beta1.VerificationPolicy{}, ns, "release", metav1.ConditionFalse, "Unsatisfiable")
	require.Contains(t, said.Message, "asks for 5 different signers")
	w.denied(t, ns, w.byTeamA, "VerificationPolicy "+ns+"/release")
}

func TestFirstVerifierOfANamespaceSaysWhatNoLongerAppliesThere(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "platform-signature", "keys"))
	said := w.effective(t, &v1beta1.Verifier{}, ns, "platform-signature", metav1.ConditionTrue, "InForce")
	require.Contains(t, said.Message, "these no longer apply there: ClusterVerifier platform-signature")
	w.denied(t, ns, w.signed) // which is true: the cluster's policy now asks for the team's key
	w.admitted(t, ns, w.byTeamA)
}

func TestMandatoryPolicyThatWarnsSaysThatItOnlyWarns(t *testing.T) {
	w := installed(t)
	mandatory := policy("", "e2e-only-warns", `{scope: Mandatory, enforcementAction: Warn, defaultAction: Allow}`)
	w.during(t, mandatory)
	w.condition(t, &v1beta1.ClusterVerificationPolicy{}, "", "e2e-only-warns", metav1.ConditionTrue, "Valid")
	said := w.effective(t, &v1beta1.ClusterVerificationPolicy{}, "", "e2e-only-warns", metav1.ConditionTrue, "OnlyWarns")
	require.Contains(t, said.Message, "a mandatory policy that only warns")
}

func TestClusterPolicyThatEveryNamespaceOverridesSaysSo(t *testing.T) {
	w := installed(t)
	w.effective(t, &v1beta1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "InForce")
	ns := w.namespace(t) // the last one that has nothing of its own
	made := map[string]*v1beta1.VerificationPolicy{}
	t.Cleanup(func() {
		for _, object := range made {
			require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
		}
	})
	suite.Eventually(t, func(ctx context.Context) error {
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
			object := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "e2e-overriding"}}
			if err := w.Client.Create(ctx, object); err != nil {
				return err
			}
			made[namespace.Name] = object
		}
		return nil
	})
	w.effective(t, &v1beta1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "InForce")
	w.apply(t, policy(ns, "e2e-overriding", "{enforcementAction: Warn}"))
	w.condition(t, &v1beta1.VerificationPolicy{}, ns, "e2e-overriding", metav1.ConditionTrue, "Valid")
	w.effective(t, &v1beta1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "InForce")
	w.apply(t, policy(ns, "e2e-overriding", "{enforcementAction: Deny}"))
	said := w.effective(t, &v1beta1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionFalse, "Overridden")
	require.Contains(t, said.Message, "every namespace has a VerificationPolicy of its own")
	w.condition(t, &v1beta1.ClusterVerificationPolicy{}, "", "signed", metav1.ConditionTrue, "Valid")
}
