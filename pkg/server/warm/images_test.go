package warm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// everywhere has an image in each place that a pod may have one.
func everywhere() corev1.PodSpec {
	return corev1.PodSpec{
		InitContainers:      []corev1.Container{{Name: "first", Image: "r.example.com/init:1"}},
		Containers:          []corev1.Container{{Name: "main", Image: "nginx"}, {Name: "same", Image: "docker.io/library/nginx:latest"}, {Image: "not an image"}, {}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "r.example.com/debug:1"}}},
		Volumes: []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r.example.com/model:1"}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
}

func meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: "1", ResourceVersion: "2",
		Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"c": "d"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
}

func TestOnlyNamesAndImagesAreKept(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: everywhere()}
	for name, object := range map[string]any{
		"Deployment":  &appsv1.Deployment{ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Template: template}},
		"StatefulSet": &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Template: template}},
		"DaemonSet":   &appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Template: template}},
		"Job":         &batchv1.Job{ObjectMeta: meta(), Spec: batchv1.JobSpec{Template: template}},
		"CronJob": &batchv1.CronJob{ObjectMeta: meta(),
			Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}},
		"running Pod": &corev1.Pod{ObjectMeta: meta(), Spec: everywhere(), Status: corev1.PodStatus{Phase: corev1.PodRunning}},
		"pending Pod": &corev1.Pod{ObjectMeta: meta(), Spec: everywhere(), Status: corev1.PodStatus{Phase: corev1.PodPending}},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := keep(object)
			require.NoError(t, err)
			of, _ := workload.Of(object.(runtime.Object))
			want := &record{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: "1", ResourceVersion: "2"}, apiVersion: of.APIVersion, kind: of.Kind,
				images: []string{"r.example.com/init:1", "docker.io/library/nginx:latest", "r.example.com/debug:1", "r.example.com/model:1"}}
			if want.kind == "Pod" {
				want.uses = []use{{workload.InitContainer, "first", want.images[0]}, {workload.Container, "main", want.images[1]},
					{workload.Container, "same", want.images[1]},
					{workload.EphemeralContainer, "debug", want.images[2]}, {workload.Volume, "model", want.images[3]}}
			}
			require.Equal(t, want, kept)
			again, err := keep(kept)
			require.NoError(t, err)
			require.Same(t, kept, again)
		})
	}
}

func TestPodsThatHaveEndedHaveNoImages(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown, ""} {
		kept, err := keep(&corev1.Pod{ObjectMeta: meta(), Spec: everywhere(), Status: corev1.PodStatus{Phase: phase}})
		require.NoError(t, err)
		require.Empty(t, kept.(*record).images, phase)
	}
}

func TestUnknownObjectsAreKeptAsTheyAre(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "team-a/web"}
	kept, err := keep(gone)
	require.NoError(t, err)
	require.Equal(t, gone, kept)
}

func TestAnObjectsImagesAreBounded(t *testing.T) {
	var spec corev1.PodSpec
	for i := range 10 * maxImages {
		spec.Containers = append(spec.Containers, corev1.Container{Image: fmt.Sprintf("r.example.com/app:%d", i)})
	}
	images, _ := imagesOf(&spec)
	require.Len(t, images, maxImages)
	for i := range spec.Containers {
		spec.Containers[i].Image = "r.example.com/app:1"
	}
	images, uses := imagesOf(&spec)
	require.Len(t, images, 1)
	require.Len(t, uses, maxUses)
}
