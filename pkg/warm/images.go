package warm

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/image"
)

// record is all that is kept of an object: whose it is and its images. Pods in a
// cluster are many and each is kilobytes; of them only this stays in memory.
type record struct {
	metav1.ObjectMeta
	images []string // normalised, each once
}

// keep turns an object into its record; it is the transform of every informer, and
// leaves alone what it does not know or has made itself.
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

// imagesOf returns the images that a pod needs, in the order of its fields. One
// that is no reference is left out: there is nothing to verify.
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
