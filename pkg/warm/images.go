package warm

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/image"
)

// record is what stays in memory of an object: its identity and its images. A cluster has
// many pods, and each takes kilobytes.
type record struct {
	metav1.ObjectMeta
	images []string // normalised, each once
}

// keep turns an object into its record. It is the transform of every informer, and returns
// records and unknown objects as they are.
func keep(object any) (any, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return newRecord(&o.ObjectMeta, &o.Spec.Template.Spec), nil
	case *appsv1.StatefulSet:
		return newRecord(&o.ObjectMeta, &o.Spec.Template.Spec), nil
	case *appsv1.DaemonSet:
		return newRecord(&o.ObjectMeta, &o.Spec.Template.Spec), nil
	case *batchv1.Job:
		return newRecord(&o.ObjectMeta, &o.Spec.Template.Spec), nil
	case *batchv1.CronJob:
		return newRecord(&o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template.Spec), nil
	case *corev1.Pod:
		if o.Status.Phase != corev1.PodRunning && o.Status.Phase != corev1.PodPending {
			return newRecord(&o.ObjectMeta, &corev1.PodSpec{}), nil
		}
		return newRecord(&o.ObjectMeta, &o.Spec), nil
	}
	return object, nil
}

func newRecord(meta *metav1.ObjectMeta, spec *corev1.PodSpec) *record {
	return &record{images: imagesOf(spec), ObjectMeta: metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion}}
}

// imagesOf returns the images of a pod in the order of its fields. It skips malformed
// references: there is nothing to verify.
func imagesOf(spec *corev1.PodSpec) []string {
	var found []string
	add := func(name string) {
		if len(found) >= maxImages {
			return
		}
		if ref, err := image.Parse(name); err == nil && !slices.Contains(found, ref.String()) {
			found = append(found, ref.String())
		}
	}
	for i := range spec.InitContainers {
		add(spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Image)
	}
	for i := range spec.EphemeralContainers {
		add(spec.EphemeralContainers[i].Image)
	}
	for i := range spec.Volumes {
		if volume := spec.Volumes[i].Image; volume != nil {
			add(volume.Reference)
		}
	}
	return found
}
