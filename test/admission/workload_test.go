//go:build e2e

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// workloads are objects that make pods with an image, by kind.
func workloads(ns, image string) map[string]client.Object {
	meta := metav1.ObjectMeta{Namespace: ns, Name: "workload"}
	labels := map[string]string{"app": "workload"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: suite.Pod(ns, "", image).Spec}
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
func (w *world) sample(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile("../../library/verified-images/samples/" + name)
	require.NoError(t, err)
	w.during(t, string(text))
}

func TestWorkloadsAreDeniedWhenTheyAreApplied(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.sample(t, "constraint-workloads.yaml")
	for kind, workload := range workloads(ns, w.unsigned) {
		require.NoError(t, cluster.Until(suite.Within(t), func(ctx context.Context) error {
			return deniedBy(w.Client.Create(ctx, workload.DeepCopyObject().(client.Object), client.DryRunAll), "verified-images-workloads", w.unsigned)
		}), kind)
	}
	for kind, workload := range workloads(ns, w.signed) {
		require.NoError(t, w.Client.Create(suite.Within(t), workload, client.DryRunAll), kind)
	}
}

func TestTagsInWorkloadsArePinned(t *testing.T) {
	w := installed(t)
	const ns = "pinned-workloads"
	w.makeNamespace(t, ns)
	w.admitted(t, ns, w.signed)
	for kind, workload := range workloads(ns, w.signed) {
		require.NoError(t, w.Client.Create(suite.Within(t), workload, client.DryRunAll), kind)
		if kind == "ReplicaSet" || kind == "ReplicationController" {
			require.Equal(t, w.signed, templateOf(t, workload).Spec.Containers[0].Image, "controllers compare it with its owner")
			continue
		}
		text, err := json.Marshal(workload)
		require.NoError(t, err)
		require.Regexp(t, `"image":"`+w.signed+`@sha256:[0-9a-f]{64}"`, string(text), kind)
	}
}

func TestADryRunDeniesNothingAndReports(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.apply(t, policy(ns, "lax", `{defaultAction: Allow}`))
	w.admitted(t, ns, w.unsigned)
	require.NoError(t, w.create(t, ns, w.unsigned))
	w.apply(t, policy(ns, "lax", `{defaultAction: Deny}`))
	w.sample(t, "constraint-dryrun.yaml")
	w.audits(t, 1, "verified-images-dryrun", ns)
}

func TestExemptImagesAreAdmittedUnverified(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.constraint(t, "exempting",
		fmt.Sprintf(`match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [%s]}, parameters: {exemptImages: ["%s/somebody/*"]}`, ns, w.Registry.Host()))
	other, err := w.push(suite.Within(t), "nobody/app")
	require.NoError(t, err)
	suite.Eventually(t, func(ctx context.Context) error { return deniedBy(w.try(ctx, ns, other), "exempting") })
	err = w.try(suite.Within(t), ns, w.unsigned)
	require.NoError(t, deniedFor(err), "by the constraint without exemptions")
	require.NotContains(t, err.Error(), "[exempting]")
}
