//go:build e2e

package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestNamespaceWithoutResourcesUsesTheClustersAndDeniesWithAReason(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	require.NoError(t, w.create(t, ns, w.signed))
	err := w.create(t, ns, w.unsigned)
	require.NoError(t, deniedFor(err, w.unsigned, "denied in namespace "+ns, "ClusterVerificationPolicy signed", "platform-signature",
		"no signature was found (looked at the tag sha256-", ".sig and the referrers of this digest). To fix, if your build made it: cosign sign --key KEY "+
			"--use-signing-config=false --tlog-upload=false ", "traceID "))
}

func TestTheFirstVerifierOfANamespaceSaysWhatItHides(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "release", "keys"))
	w.denied(t, ns, w.signed, ns+" has Verifiers of its own, so ClusterVerifier platform-signature does not apply there",
		"To fix: create a VerificationPolicy in "+ns+" that requires its own Verifiers (release)")
}

func TestNamespacesOwnResourcesOverrideAndVerdictsDiffer(t *testing.T) {
	w := installed(t)
	teamA, teamB := w.namespace(t), w.namespace(t)
	w.apply(t, own(teamA, w.teamA)+own(teamB, w.teamB))
	w.admitted(t, teamA, w.byTeamA)
	require.NoError(t, w.create(t, teamA, w.byTeamA))
	// The same image, the opposite verdict.
	w.denied(t, teamB, w.byTeamA, "VerificationPolicy "+teamB+"/release")
	require.Error(t, w.create(t, teamB, w.byTeamA))
	// The platform's signature means nothing to a team with rules of its own.
	w.denied(t, teamA, w.signed, "VerificationPolicy "+teamA+"/release")
}

func TestMandatoryPolicyHoldsAgainstALaxNamespace(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, policy(ns, "lax", `{defaultAction: Allow}`))
	w.admitted(t, ns, w.unsigned)
	mandatory := `
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: e2e-mandatory}
spec: {scope: Mandatory, defaultAction: Allow, rules: [{images: ["` + w.Registry.Host() + `/somebody/**"], require: [{anyOf: [platform-signature]}]}]}
`
	w.apply(t, mandatory)
	t.Cleanup(func() {
		object := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "e2e-mandatory"}}
		require.NoError(t, w.Client.Delete(context.Background(), object))
	})
	w.denied(t, ns, w.unsigned, "ClusterVerificationPolicy e2e-mandatory")
	w.admitted(t, ns, w.byTeamA) // the mandatory policy is not about it
	w.condition(t, &v1beta1.ClusterVerificationPolicy{}, "", "e2e-mandatory", metav1.ConditionTrue, "Valid")
}

func TestBrokenTrustStoreDeniesItsNamespaceOnlyAndSaysWhy(t *testing.T) {
	w := installed(t)
	broken, other := w.namespace(t), w.namespace(t)
	w.apply(t, own(broken, w.teamA)+own(other, w.teamA))
	w.admitted(t, broken, w.byTeamA)
	w.admitted(t, other, w.byTeamA)
	w.apply(t, header(broken, "TrustStore", "keys")+"spec: {type: PublicKeys, source: {inline: no key}}")
	w.denied(t, broken, w.byTeamA, "TrustStore "+broken+"/keys")
	w.admitted(t, other, w.byTeamA)
	said := w.condition(t, &v1beta1.TrustStore{}, broken, "keys", metav1.ConditionFalse, "Invalid")
	require.Contains(t, said.Message, "PEM")
	said = w.condition(t, &v1beta1.Verifier{}, broken, "release", metav1.ConditionFalse, "ReferenceNotReady")
	require.Contains(t, said.Message, "TrustStore "+broken+"/keys")
	w.condition(t, &v1beta1.TrustStore{}, other, "keys", metav1.ConditionTrue, "Valid")

	w.eventOf(t, broken, "TrustStore", "keys", "Warning", "Invalid")

	w.apply(t, trustStore(broken, "keys", w.teamA))
	w.admitted(t, broken, w.byTeamA)
	w.eventOf(t, broken, "TrustStore", "keys", "Normal", "Valid")
	w.condition(t, &v1beta1.TrustStore{}, broken, "keys", metav1.ConditionTrue, "Valid")
	w.condition(t, &v1beta1.Verifier{}, broken, "release", metav1.ConditionTrue, "Valid")
}

func TestEditsAndDeletesTakeEffectAtOnce(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, own(ns, w.teamB))
	w.denied(t, ns, w.byTeamA)
	w.apply(t, trustStore(ns, "keys", w.teamA))
	w.admitted(t, ns, w.byTeamA)
	w.apply(t, trustStore(ns, "keys", w.teamB))
	w.denied(t, ns, w.byTeamA)
	// Without resources of its own the namespace is the cluster's again.
	w.denied(t, ns, w.signed)
	for _, object := range []client.Object{&v1beta1.VerificationPolicy{}, &v1beta1.Verifier{}, &v1beta1.TrustStore{}} {
		require.NoError(t, w.Client.DeleteAllOf(suite.Within(t), object, client.InNamespace(ns)))
	}
	w.admitted(t, ns, w.signed)
}

func TestEveryPlaceForAnImageIsLookedAt(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	good, bad := w.signed, w.unsigned
	w.admitted(t, ns, good)
	container := func(name, image string) corev1.Container { return corev1.Container{Name: name, Image: image} }
	for name, change := range map[string]func(*corev1.PodSpec, string){
		"second container": func(s *corev1.PodSpec, image string) { s.Containers = append(s.Containers, container("two", image)) },
		"init container": func(s *corev1.PodSpec, image string) {
			s.InitContainers = append(s.InitContainers, container("init", image))
		},
		"image volume": func(s *corev1.PodSpec, image string) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := suite.Pod(ns, "places", good)
			change(&p.Spec, good)
			require.NoError(t, w.Client.Create(suite.Within(t), p.DeepCopy(), client.DryRunAll))
			p = suite.Pod(ns, "places", good)
			change(&p.Spec, bad)
			require.NoError(t, deniedFor(w.Client.Create(suite.Within(t), p, client.DryRunAll), bad))
		})
	}
}

func TestEphemeralContainerOfKubectlDebugIsDenied(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	running := suite.Pod(ns, "running", w.signed)
	require.NoError(t, w.Client.Create(suite.Within(t), running))
	_, err := w.debug(t, running, w.unsigned)
	require.NoError(t, deniedFor(err, w.unsigned))
	_, err = w.debug(t, running, w.signed)
	require.NoError(t, err)
}

func TestImageStringCannotNameAnotherNamespace(t *testing.T) {
	w := installed(t)
	ns, other := w.namespace(t), w.namespace(t)
	w.apply(t, own(other, w.teamA))
	w.admitted(t, other, w.byTeamA)
	w.denied(t, ns, w.byTeamA)
	for _, image := range []string{"[" + other + "]" + w.byTeamA, "[]" + w.byTeamA, "[" + other + "]x"} {
		require.NoError(t, deniedFor(w.create(t, ns, image), image), image)
	}
}

func TestBrokenImageStringsAreDenied(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	for _, image := range []string{w.signed + "@sha256:12", "UPPER/case", "a b", w.Registry.Host() + "/", w.Registry.Host() + "/missing:v1",
		"127.0.0.1:1/nobody:v1", fmt.Sprintf("%s@sha256:%064d", w.Registry.Host()+"/platform/app", 0)} {
		require.Error(t, w.create(t, ns, image), image)
	}
}

// eventOf waits for an event about a resource.
func (w *world) eventOf(t *testing.T, ns, kind, name, severity, reason string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := w.Client.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Regarding.Kind == kind && event.Regarding.Name == name && event.Type == severity && event.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no event %s %s of %s %s among %d", severity, reason, kind, name, len(list.Items))
	})
}
