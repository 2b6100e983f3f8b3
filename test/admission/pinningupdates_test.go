//go:build e2e

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/config"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// pinFromNowOn applies copies of the chart's Assigns to a namespace that the chart excludes: what is in it
// has tags from before.
func (w *world) pinFromNowOn(t *testing.T, ns string) {
	t.Helper()
	assigns := &unstructured.UnstructuredList{}
	assigns.SetAPIVersion("mutations.gatekeeper.sh/v1")
	assigns.SetKind("AssignList")
	require.NoError(t, w.Client.List(suite.Within(t), assigns))
	var copies int
	for _, assign := range assigns.Items {
		provider, _, err := unstructured.NestedString(assign.Object, "spec", "parameters", "assign", "externalData", "provider")
		require.NoError(t, err)
		if provider != "landwaiter-mutate" {
			continue // the one of mutation.namespaces
		}
		made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": assign.GetAPIVersion(), "kind": assign.GetKind(), "spec": assign.Object["spec"]}}
		made.SetName(ns + strings.TrimPrefix(assign.GetName(), "landwaiter"))
		require.NoError(t, unstructured.SetNestedField(made.Object, map[string]any{"scope": "Namespaced", "namespaces": []any{ns}}, "spec", "match"))
		require.NoError(t, w.Client.Create(suite.Within(t), made))
		t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), made))) })
		copies++
	}
	require.Positive(t, copies)
	// Gatekeeper reads the Assigns one by one.
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"} {
		suite.Eventually(t, func(ctx context.Context) error {
			probe := workloads(ns, w.signed)[kind]
			probe.SetName("probe")
			if err := w.Client.Create(ctx, probe, client.DryRunAll); err != nil {
				return err
			}
			if image := templateOf(t, probe).Spec.Containers[0].Image; !strings.Contains(image, "@") {
				return fmt.Errorf("%s of a %s is not pinned yet", image, kind)
			}
			return nil
		})
	}
}

// The Deployment controller compares a ReplicaSet with its Deployment. If a ReplicaSet were pinned when it is
// scaled, it would no longer be the Deployment's, and the controller would make new ones without end.
func TestADeploymentFromBeforePinningKeepsItsReplicaSetWhenItScales(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	deployment := workloads(ns, w.signed)["Deployment"]
	require.NoError(t, w.Client.Create(suite.Within(t), deployment))
	settled := func(want int32) {
		suite.Eventually(t, func(ctx context.Context) error {
			var found appsv1.Deployment
			var sets appsv1.ReplicaSetList
			if err := errors.Join(w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), &found), w.Client.List(ctx, &sets, client.InNamespace(ns))); err != nil {
				return err
			}
			if found.Status.UpdatedReplicas != want || len(sets.Items) != 1 {
				return fmt.Errorf("%d ReplicaSets have %d pods of the Deployment's template, not 1 with %d: %+v", len(sets.Items), found.Status.UpdatedReplicas,
					want, found.Status)
			}
			return nil
		})
	}
	settled(1)
	w.pinFromNowOn(t, ns)
	for want := range int32(3) {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: want + 2}}
		require.NoError(t, w.Client.SubResource("scale").Update(suite.Within(t), deployment, client.WithSubResourceBody(scale)))
		settled(want + 2)
	}
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(deployment), deployment))
	require.Nil(t, deployment.(*appsv1.Deployment).Status.CollisionCount) //nolint:forcetypeassert // a panic fails the test too
}

// A pod template that Kubernetes does not let change must not be pinned by an update: a label could not be
// set, a suspended Job not be started, and a finalizer not be removed.
func TestWorkloadsFromBeforePinningCanBeChangedAndDeleted(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	made := workloads(ns, w.signed)
	suspended := true
	made["Job"].(*batchv1.Job).Spec.Suspend = &suspended //nolint:forcetypeassert // a panic fails the test too
	for kind, workload := range made {
		require.NoError(t, w.Client.Create(suite.Within(t), workload), kind)
	}
	w.pinFromNowOn(t, ns)
	for kind, workload := range made {
		require.NoError(t, change(t, w, workload, func(o client.Object) { o.SetLabels(map[string]string{"changed": kind}) }), kind)
	}
	require.NoError(t, change(t, w, made["Job"], func(o client.Object) {
		*o.(*batchv1.Job).Spec.Suspend = false //nolint:forcetypeassert // a panic fails the test too
	}))
	for _, workload := range made {
		require.NoError(t, w.Client.Delete(suite.Within(t), workload, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		w.gone(t, workload)
	}
}

// As config/gatekeeper/values.yaml has it. Without its condition, Gatekeeper pins the tag of the debug container at each update, and
// Kubernetes refuses that.
func TestPodsWithDebugContainersFromBeforePinningCanBeChangedAndDeleted(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	pod, other := suite.Pod(ns, "debugged", w.signed), suite.Pod(ns, "other", w.signed)
	require.NoError(t, w.Client.Create(suite.Within(t), pod))
	require.NoError(t, w.Client.Create(suite.Within(t), other))
	pod, err := w.debug(t, pod, w.signed)
	require.NoError(t, err)
	w.pinFromNowOn(t, ns)
	labelled := func(value string) error {
		return change(t, w, pod.DeepCopy(), func(p *corev1.Pod) { p.Labels = map[string]string{"changed": value} })
	}
	suite.Eventually(t, func(context.Context) error {
		if labelled("before") == nil {
			return errors.New("the tag is not pinned yet")
		}
		return nil
	})
	w.leaveOut(t, labelled)
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(pod), pod))
	require.NoError(t, change(t, w, pod, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	require.NoError(t, deniedFor(change(t, w, pod.DeepCopy(), func(p *corev1.Pod) { p.Spec.Containers[0].Image = w.unsigned }), w.unsigned),
		"a new image is verified all the same")
	other, err = w.debug(t, other, w.signed)
	require.NoError(t, err)
	require.Contains(t, other.Spec.EphemeralContainers[0].Image, "@sha256:", "a new debug container is pinned")
	require.NoError(t, w.Client.Delete(suite.Within(t), pod))
	require.NoError(t, change(t, w, pod, func(p *corev1.Pod) { p.Finalizers = nil }))
	w.gone(t, pod)
}

// leaveOut gives Gatekeeper's mutating webhook the conditions of config/gatekeeper/values.yaml until the test ends, and waits until
// they count.
func (w *world) leaveOut(t *testing.T, counts func(string) error) {
	t.Helper()
	text, err := config.Files.ReadFile("gatekeeper/values.yaml")
	require.NoError(t, err)
	var values struct {
		MutatingWebhookMatchConditions []admissionv1.MatchCondition `json:"mutatingWebhookMatchConditions"`
	}
	require.NoError(t, yaml.Unmarshal(text, &values))
	require.NotEmpty(t, values.MutatingWebhookMatchConditions)
	webhooks := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gatekeeper-mutating-webhook-configuration"}}
	set := func(ctx context.Context, conditions []admissionv1.MatchCondition, resources ...string) {
		require.NoError(t, w.Client.Get(ctx, client.ObjectKeyFromObject(webhooks), webhooks))
		webhooks.Webhooks[0].MatchConditions, webhooks.Webhooks[0].Rules[0].Resources = conditions, resources
		require.NoError(t, w.Client.Update(ctx, webhooks))
	}
	t.Cleanup(func() { set(context.Background(), nil, "*") })
	set(suite.Within(t), values.MutatingWebhookMatchConditions, "*", "pods/ephemeralcontainers") // as Gatekeeper's chart has them
	suite.Eventually(t, func(context.Context) error { return counts("after") })
}
