//go:build e2e

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// customKind is a kind whose pods are in spec.template, as in Knative's CRDs and OpenShift's API.
type customKind struct{ group, version, kind, plural string }

func customKinds() []customKind {
	return []customKind{
		{"serving.knative.dev", "v1", "Service", "services"},
		{"serving.knative.dev", "v1", "Configuration", "configurations"},
		{"apps.openshift.io", "v1", "DeploymentConfig", "deploymentconfigs"},
	}
}

// withCustomKinds defines the kinds, and denies them and pods in a namespace of its own.
func withCustomKinds(t *testing.T) (w *world, ns string) {
	t.Helper()
	w = installed(t)
	ns = w.namespace(t)
	w.admitted(t, ns, w.signed)
	for _, k := range customKinds() {
		w.during(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.%[2]s}, spec: {group: %[2]s,
  scope: Namespaced, names: {kind: %[3]s, plural: %[1]s}, versions: [{name: %[4]s, served: true, storage: true, subresources: {status: {}},
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, k.plural, k.group, k.kind, k.version))
	}
	w.constraint(t, "custom-kinds", `match: {namespaces: [`+ns+`], kinds: [{apiGroups: [""], kinds: [Pod]}, {apiGroups: [apps], kinds: [Deployment, ReplicaSet]},
  {apiGroups: [serving.knative.dev], kinds: [Service, Configuration]}, {apiGroups: [apps.openshift.io], kinds: [DeploymentConfig]}]}`)
	for _, k := range customKinds() {
		suite.Eventually(t, func(ctx context.Context) error {
			return deniedBy(w.Client.Create(ctx, k.object(ns, w.unsigned), client.DryRunAll), "custom-kinds", "image "+w.unsigned+" is denied in namespace "+ns)
		})
	}
	return w, ns
}

func (k customKind) object(ns, image string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1), "template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{}}, "spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}}}}
	o.SetAPIVersion(k.group + "/" + k.version)
	o.SetKind(k.kind)
	o.SetNamespace(ns)
	o.SetName("custom")
	return o
}

func TestKindsOfKnativeAndOpenShiftAreDeniedWhenTheyAreApplied(t *testing.T) {
	w, ns := withCustomKinds(t)
	for _, k := range customKinds() {
		t.Run(k.kind, func(t *testing.T) {
			update := func(change func(o *unstructured.Unstructured)) error {
				found := k.object(ns, "")
				require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: ns, Name: "custom"}, found))
				change(found)
				return w.Client.Update(suite.Within(t), found)
			}
			image := func(image string) func(*unstructured.Unstructured) {
				return func(o *unstructured.Unstructured) { o.Object["spec"] = k.object(ns, image).Object["spec"] }
			}
			o := k.object(ns, w.signed)
			o.SetFinalizers([]string{"example.com/wait"})
			require.NoError(t, w.Client.Create(suite.Within(t), o))
			require.NoError(t, deniedBy(update(image(w.unsigned)), "custom-kinds", w.unsigned))
			require.NoError(t, update(image(w.signed+"@"+w.digestOf(t, w.signed))))

			w.apply(t, policy(ns, "nothing", `{rules: [{images: ["**"], action: Deny}]}`))
			w.denied(t, ns, w.signed, "nothing")
			require.NoError(t, update(func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"serving.knative.dev/lastModifier": "somebody"})
				require.NoError(t, unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas"))
			}), "what Knative notes, and scaling, is no new image")
			require.NoError(t, w.Client.Delete(suite.Within(t), k.object(ns, "")))
			require.NoError(t, update(func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }), "it can be deleted")
			w.remove(t, policy(ns, "nothing", `{rules: []}`))
			w.admitted(t, ns, w.signed)
		})
	}
	kubernetes := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	require.NoError(t, w.Client.Create(suite.Within(t), kubernetes), "the constraint matches Knative's alone")
}

// Knative adds its queue-proxy to every pod, and replaces tags by digests before it makes a Deployment.
func TestThePodsOfAKnativeServiceNeedARuleForItsSidecar(t *testing.T) {
	w, ns := withCustomKinds(t)
	const sidecar = "somebody/app"
	deployment := workloads(ns, w.signed+"@"+w.digestOf(t, w.signed))["Deployment"].(*appsv1.Deployment) //nolint:forcetypeassert // a panic fails the test too
	template := &deployment.Spec.Template.Spec
	template.Containers = append(template.Containers, corev1.Container{Name: "queue-proxy", Image: w.unsigned})
	require.NoError(t, deniedBy(w.Client.Create(suite.Within(t), deployment.DeepCopy()), "custom-kinds", "image "+w.unsigned))
	w.apply(t, policy(ns, "sidecar", `{rules: [{images: ["`+w.Registry.Host()+"/"+sidecar+`"], action: Allow}], defaultAction: Inherit}`))
	suite.Eventually(t, func(ctx context.Context) error { return w.Client.Create(ctx, deployment.DeepCopy(), client.DryRunAll) })
	require.NoError(t, w.Client.Create(suite.Within(t), deployment))
	w.podsOf(t, ns, 1)
}

// podsOf waits until a Deployment has made pods.
func (w *world) podsOf(t *testing.T, ns string, want int) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := w.Client.List(ctx, &pods, client.InNamespace(ns)); err != nil {
			return err
		}
		if len(pods.Items) != want {
			return fmt.Errorf("there are %d pods, not %d", len(pods.Items), want)
		}
		return nil
	})
}

// A controller that writes its tag again and again, as Knative's does if it resolves no tags, changes nothing.
func TestAControllerThatWritesATagAgainDoesNotFightThePinning(t *testing.T) {
	w := installed(t)
	const ns = "pinned-controller"
	w.makeNamespace(t, ns)
	w.admitted(t, ns, w.signed)
	deployment := workloads(ns, w.signed)["Deployment"].(*appsv1.Deployment) //nolint:forcetypeassert // a panic fails the test too
	desired := deployment.Spec.DeepCopy()
	require.NoError(t, w.Client.Create(suite.Within(t), deployment))
	require.Contains(t, deployment.Spec.Template.Spec.Containers[0].Image, "@sha256:")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(deployment), deployment))
	generation := deployment.Generation
	for range 3 {
		suite.Eventually(t, func(ctx context.Context) error {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
				return err
			}
			deployment.Spec.Template.Spec.Containers[0].Image = desired.Template.Spec.Containers[0].Image
			return w.Client.Update(ctx, deployment)
		})
		require.Equal(t, generation, deployment.Generation)
	}
}

// OpenShift's command line makes a Deployment with a blank image, which the controller of image triggers sets.
func TestAnImageThatATriggerSetsIsVerifiedOnceItIsSet(t *testing.T) {
	w, ns := withCustomKinds(t)
	w.sample(t, "constraint-workloads.yaml")
	w.sample(t, "constraint-warn.yaml")
	suite.Eventually(t, func(ctx context.Context) error {
		return deniedBy(w.Client.Create(ctx, workloads(ns, w.unsigned)["Deployment"], client.DryRunAll), "verified-images-workloads", w.unsigned)
	})
	deployment := workloads(ns, " ")["Deployment"].(*appsv1.Deployment) //nolint:forcetypeassert // a panic fails the test too
	deployment.Annotations = map[string]string{"image.openshift.io/triggers": `[{"from":{"kind":"ImageStreamTag","name":"app:latest"},` +
		`"fieldPath":"spec.template.spec.containers[?(@.name==\"app\")].image"}]`}
	require.NoError(t, w.Client.Create(suite.Within(t), deployment))
	for _, k := range customKinds() {
		require.NoError(t, w.Client.Create(suite.Within(t), k.object(ns, " "), client.DryRunAll), k.kind)
	}
	require.ErrorContains(t, w.try(suite.Within(t), ns, " "), "must not have leading or trailing whitespace", "no pod has such an image")
	suite.Eventually(t, func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		for _, c := range deployment.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && strings.Contains(c.Message, "image") {
				t.Log(c.Message)
				return nil
			}
		}
		return errors.New("the Deployment does not say that its pods are refused")
	})
	w.podsOf(t, ns, 0)

	triggered := func(ctx context.Context, image string) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		deployment.Spec.Template.Spec.Containers[0].Image = image
		return w.Client.Update(ctx, deployment)
	}
	require.NoError(t, deniedBy(triggered(suite.Within(t), w.unsigned), "verified-images-workloads", w.unsigned))
	suite.Eventually(t, func(ctx context.Context) error { return triggered(ctx, w.signed+"@"+w.digestOf(t, w.signed)) })
	w.podsOf(t, ns, 1)
}

// What the template leaves out in workloads can never run: the API server refuses it in pods, also where nothing asks us.
func TestTheAPIServerRefusesABlankImageInAPodAndNotInAWorkload(t *testing.T) {
	w := installed(t)
	for _, blank := range []string{" ", "\t", "\u00a0"} {
		require.ErrorContains(t, w.Client.Create(suite.Within(t), suite.Pod("kube-system", "blank", blank), client.DryRunAll),
			"must not have leading or trailing whitespace", "%q", blank)
		require.NoError(t, w.Client.Create(suite.Within(t), workloads("kube-system", blank)["Deployment"], client.DryRunAll), "%q", blank)
	}
}
