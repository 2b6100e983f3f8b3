//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

func TestNamespaceWithoutResourcesUsesTheClustersAndDeniesWithAReason(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	require.NoError(t, create(t, ns, w.signed))
	err := create(t, ns, w.unsigned)
	require.NoError(t, deniedFor(err, w.unsigned, "denied in namespace "+ns, "ClusterVerificationPolicy signed", "platform-signature",
		"no signature was found. To fix: cosign sign --key KEY ", " (traceID "))
}

func TestTheFirstVerifierOfANamespaceSaysWhatItHides(t *testing.T) {
	ns := namespace(t)
	apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "release", "keys"))
	denied(t, ns, w.signed, ns+" has Verifiers of its own, so ClusterVerifier platform-signature does not apply there",
		"To fix: create a VerificationPolicy in "+ns+" that requires its own Verifiers (release)")
}

func TestNamespacesOwnResourcesOverrideAndVerdictsDiffer(t *testing.T) {
	teamA, teamB := namespace(t), namespace(t)
	apply(t, own(teamA, w.teamA)+own(teamB, w.teamB))
	admitted(t, teamA, w.byTeamA)
	require.NoError(t, create(t, teamA, w.byTeamA))
	// The same image, the opposite verdict.
	denied(t, teamB, w.byTeamA, "VerificationPolicy "+teamB+"/release")
	require.Error(t, create(t, teamB, w.byTeamA))
	// The platform's signature means nothing to a team with rules of its own.
	denied(t, teamA, w.signed, "VerificationPolicy "+teamA+"/release")
}

func TestFloorHoldsAgainstALaxNamespace(t *testing.T) {
	ns := namespace(t)
	apply(t, policy(ns, "lax", `{defaultAction: Allow}`))
	admitted(t, ns, w.unsigned)
	floor := `
apiVersion: landwaiter.dev/v1alpha1
kind: ClusterVerificationPolicy
metadata: {name: e2e-floor}
spec: {scope: Floor, defaultAction: Allow, rules: [{images: ["` + w.Registry.Host() + `/somebody/**"], require: [{anyOf: [platform-signature]}]}]}
`
	apply(t, floor)
	t.Cleanup(func() {
		object := &v1alpha1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "e2e-floor"}}
		require.NoError(t, w.Client.Delete(context.Background(), object))
	})
	denied(t, ns, w.unsigned, "ClusterVerificationPolicy e2e-floor")
	admitted(t, ns, w.byTeamA) // the floor is not about it
	condition(t, &v1alpha1.ClusterVerificationPolicy{}, "", "e2e-floor", metav1.ConditionTrue, "Valid")
}

func TestBrokenTrustStoreDeniesItsNamespaceOnlyAndSaysWhy(t *testing.T) {
	broken, other := namespace(t), namespace(t)
	apply(t, own(broken, w.teamA)+own(other, w.teamA))
	admitted(t, broken, w.byTeamA)
	admitted(t, other, w.byTeamA)
	apply(t, header(broken, "TrustStore", "keys")+"spec: {type: PublicKeys, source: {inline: no key}}")
	denied(t, broken, w.byTeamA, "TrustStore "+broken+"/keys")
	admitted(t, other, w.byTeamA)
	said := condition(t, &v1alpha1.TrustStore{}, broken, "keys", metav1.ConditionFalse, "Invalid")
	require.Contains(t, said.Message, "PEM")
	said = condition(t, &v1alpha1.Verifier{}, broken, "release", metav1.ConditionFalse, "ReferenceNotReady")
	require.Contains(t, said.Message, "TrustStore "+broken+"/keys")
	condition(t, &v1alpha1.TrustStore{}, other, "keys", metav1.ConditionTrue, "Valid")

	eventOf(t, broken, "TrustStore", "keys", "Warning", "Invalid")

	apply(t, trustStore(broken, "keys", w.teamA))
	admitted(t, broken, w.byTeamA)
	eventOf(t, broken, "TrustStore", "keys", "Normal", "Valid")
	condition(t, &v1alpha1.TrustStore{}, broken, "keys", metav1.ConditionTrue, "Valid")
	condition(t, &v1alpha1.Verifier{}, broken, "release", metav1.ConditionTrue, "Valid")
}

func TestEditsAndDeletesTakeEffectAtOnce(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamB))
	denied(t, ns, w.byTeamA)
	apply(t, trustStore(ns, "keys", w.teamA))
	admitted(t, ns, w.byTeamA)
	apply(t, trustStore(ns, "keys", w.teamB))
	denied(t, ns, w.byTeamA)
	// Without resources of its own the namespace is the cluster's again.
	denied(t, ns, w.signed)
	for _, object := range []client.Object{&v1alpha1.VerificationPolicy{}, &v1alpha1.Verifier{}, &v1alpha1.TrustStore{}} {
		require.NoError(t, w.Client.DeleteAllOf(within(t), object, client.InNamespace(ns)))
	}
	admitted(t, ns, w.signed)
}

func TestEveryPlaceForAnImageIsLookedAt(t *testing.T) {
	ns := namespace(t)
	good, bad := w.signed, w.unsigned
	admitted(t, ns, good)
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
			p := pod(ns, "places", good)
			change(&p.Spec, good)
			require.NoError(t, w.Client.Create(within(t), p.DeepCopy(), client.DryRunAll))
			p = pod(ns, "places", good)
			change(&p.Spec, bad)
			require.NoError(t, deniedFor(w.Client.Create(within(t), p, client.DryRunAll), bad))
		})
	}
}

func TestEphemeralContainerOfKubectlDebugIsDenied(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	running := pod(ns, "running", w.signed)
	require.NoError(t, w.Client.Create(within(t), running))
	debug := func(name, image string) error {
		changed := running.DeepCopy()
		changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: image}})
		return w.Client.SubResource("ephemeralcontainers").Update(within(t), changed)
	}
	require.NoError(t, deniedFor(debug("debugger", w.unsigned), w.unsigned))
	require.NoError(t, debug("debugger", w.signed))
}

func TestImageStringCannotNameAnotherNamespace(t *testing.T) {
	ns, other := namespace(t), namespace(t)
	apply(t, own(other, w.teamA))
	admitted(t, other, w.byTeamA)
	denied(t, ns, w.byTeamA)
	for _, image := range []string{"[" + other + "]" + w.byTeamA, "[]" + w.byTeamA, "[" + other + "]x"} {
		require.NoError(t, deniedFor(create(t, ns, image), image), image)
	}
}

func TestBrokenImageStringsAreDenied(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	for _, image := range []string{w.signed + "@sha256:12", "UPPER/case", "a b", w.Registry.Host() + "/", w.Registry.Host() + "/missing:v1",
		"127.0.0.1:1/nobody:v1", fmt.Sprintf("%s@sha256:%064d", w.Registry.Host()+"/platform/app", 0)} {
		require.Error(t, create(t, ns, image), image)
	}
}

// eventOf waits for an event about a resource.
func eventOf(t *testing.T, ns, kind, name, severity, reason string) {
	t.Helper()
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
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
	}))
}
