//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// workloads are objects that make pods with an image, by kind.
func workloads(ns, image string) map[string]client.Object {
	meta := metav1.ObjectMeta{Namespace: ns, Name: "workload"}
	labels := map[string]string{"app": "workload"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(ns, "", image).Spec}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	once := *template.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	return map[string]client.Object{
		"Deployment":  &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		"ReplicaSet":  &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		"StatefulSet": &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		"DaemonSet":   &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		"ReplicationController": &corev1.ReplicationController{ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Selector: labels, Template: &template}},
		"Job": &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: once}},
		"CronJob": &batchv1.CronJob{ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once}}}},
	}
}

// sample applies a constraint of the library, and removes it in the end.
func sample(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile("../../library/verified-images/samples/" + name)
	require.NoError(t, err)
	apply(t, string(text))
	t.Cleanup(func() { remove(t, string(text)) })
}

func TestWorkloadsAreDeniedWhenTheyAreApplied(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	sample(t, "constraint-workloads.yaml")
	for kind, workload := range workloads(ns, w.unsigned) {
		require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
			err := w.Client.Create(ctx, workload.DeepCopyObject().(client.Object), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), "[verified-images-workloads]") || !strings.Contains(err.Error(), w.unsigned) {
				return fmt.Errorf("not denied: %w", err)
			}
			return nil
		}), kind)
	}
	for kind, workload := range workloads(ns, w.signed) {
		require.NoError(t, w.Client.Create(within(t), workload, client.DryRunAll), kind)
	}
}

func TestTagsInWorkloadsArePinned(t *testing.T) {
	const ns = "pinned-workloads"
	makeNamespace(t, ns)
	admitted(t, ns, w.signed)
	for kind, workload := range workloads(ns, w.signed) {
		require.NoError(t, w.Client.Create(within(t), workload, client.DryRunAll), kind)
		text, err := json.Marshal(workload)
		require.NoError(t, err)
		require.Regexp(t, `"image":"`+w.signed+`@sha256:[0-9a-f]{64}"`, string(text), kind)
	}
}

func TestADryRunDeniesNothingAndReports(t *testing.T) {
	ns := namespace(t)
	apply(t, policy(ns, "lax", `{defaultAction: Allow}`))
	admitted(t, ns, w.unsigned)
	require.NoError(t, create(t, ns, w.unsigned))
	apply(t, policy(ns, "lax", `{defaultAction: Deny}`))
	sample(t, "constraint-dryrun.yaml")
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		constraint := &unstructured.Unstructured{}
		constraint.SetAPIVersion("constraints.gatekeeper.sh/v1beta1")
		constraint.SetKind("VerifiedImages")
		if err := w.Client.Get(ctx, client.ObjectKey{Name: "verified-images-dryrun"}, constraint); err != nil {
			return err
		}
		if status := fmt.Sprint(constraint.Object["status"]); !strings.Contains(status, "namespace:"+ns) {
			return fmt.Errorf("nothing of %s in %s", ns, status)
		}
		return nil
	}))
}

func TestExemptImagesAreAdmittedUnverified(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	constraint(t, "exempting", fmt.Sprintf(`match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [%s]}, parameters: {exemptImages: ["%s/somebody/*"]}`, ns, w.Registry.Host()))
	other, err := w.push(within(t), "nobody/app")
	require.NoError(t, err)
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		err := try(ctx, ns, other)
		if err == nil || !strings.Contains(err.Error(), "[exempting]") {
			return fmt.Errorf("not denied: %w", err)
		}
		return nil
	}))
	err = try(within(t), ns, w.unsigned)
	require.NoError(t, deniedFor(err), "by the constraint without exemptions")
	require.NotContains(t, err.Error(), "[exempting]")
}
