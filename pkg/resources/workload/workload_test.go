package workload

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestEveryContainerTypeOfAPodThatHasAnImageIsFoundInOrder(t *testing.T) {
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "first", Image: "r.example.com/init:1"}},
		Containers: []corev1.Container{{Name: "main", Image: "nginx"}, {Name: "none"}, {Name: "set later", Image: " "},
			{Name: "odd", Image: "not an image"}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}},
		Volumes: []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r.example.com/model:1"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	want := []Image{
		{InitContainer, "first", "r.example.com/init:1"},
		{Container, "main", "nginx"},
		{Container, "odd", "not an image"},
		{EphemeralContainer, "debug", "busybox"},
		{Volume, "model", "r.example.com/model:1"},
	}
	require.Equal(t, want, slices.Collect(Images(spec)))
	for n := range want { // whoever stops early gets no more
		var seen []Image
		for i := range Images(spec) {
			if seen = append(seen, i); len(seen) == n+1 {
				break
			}
		}
		require.Equal(t, want[:n+1], seen)
	}
}

func TestEveryKindThatRunsPodsIsKnown(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "team-a", Name: "web"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}
	template := corev1.PodTemplateSpec{Spec: spec}
	for name, object := range map[string]runtime.Object{
		"Pod":                   &corev1.Pod{ObjectMeta: meta, Spec: spec},
		"ReplicationController": &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Template: &template}},
		"Deployment":            &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
		"ReplicaSet":            &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template}},
		"StatefulSet":           &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}},
		"DaemonSet":             &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		"Job":                   &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}},
		"CronJob": &batchv1.CronJob{ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}},
	} {
		t.Run(name, func(t *testing.T) {
			found, ok := Of(object)
			require.True(t, ok)
			require.Equal(t, name, found.Kind)
			require.Equal(t, meta, *found.Meta)
			require.Equal(t, spec, *found.Pod)
		})
	}
	empty, ok := Of(&corev1.ReplicationController{})
	require.True(t, ok)
	require.Empty(t, slices.Collect(Images(empty.Pod)))
	_, ok = Of(&corev1.PodTemplate{})
	require.False(t, ok)
}
