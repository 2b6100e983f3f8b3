// Package workload finds the images of a pod and the pods of a workload, the same for
// everything that looks at what runs. It is pure, and parses no references: what users
// wrote is returned as it is.
package workload

import (
	"cmp"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ContainerType is the part of a pod that has an image.
type ContainerType string

// The types: what of a pod has an image.
const (
	InitContainer      ContainerType = "initContainer"
	Container          ContainerType = "container"
	EphemeralContainer ContainerType = "ephemeralContainer"
	Volume             ContainerType = "volume"
)

// Image is an image of a pod as the pod has it.
type Image struct {
	ContainerType ContainerType
	Name          string // of the container or volume
	Image         string // as written, not parsed
}

// Images returns the images of a pod in the order of its fields: init containers,
// containers, ephemeral containers, and volumes of type image. A container without an
// image is left out.
func Images(spec *corev1.PodSpec) iter.Seq[Image] {
	return func(yield func(Image) bool) {
		give := func(of ContainerType, name, image string) bool {
			return image == "" || yield(Image{of, name, image})
		}
		for i := range spec.InitContainers {
			if c := &spec.InitContainers[i]; !give(InitContainer, c.Name, c.Image) {
				return
			}
		}
		for i := range spec.Containers {
			if c := &spec.Containers[i]; !give(Container, c.Name, c.Image) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if c := &spec.EphemeralContainers[i]; !give(EphemeralContainer, c.Name, c.Image) {
				return
			}
		}
		for i := range spec.Volumes {
			if v := &spec.Volumes[i]; v.Image != nil && !give(Volume, v.Name, v.Image.Reference) {
				return
			}
		}
	}
}

// Object is a Pod or workload, as far as it says what runs.
type Object struct {
	APIVersion, Kind string
	Meta             *metav1.ObjectMeta
	Pod              *corev1.PodSpec // or that of its pods
}

// Of returns what a Pod or workload says. It returns false for objects of other kinds.
// PodTemplates are such: nothing runs them by themselves.
func Of(object runtime.Object) (Object, bool) {
	switch o := object.(type) {
	case *corev1.Pod:
		return Object{"v1", "Pod", &o.ObjectMeta, &o.Spec}, true
	case *corev1.ReplicationController:
		template := cmp.Or(o.Spec.Template, &corev1.PodTemplateSpec{})
		return Object{"v1", "ReplicationController", &o.ObjectMeta, &template.Spec}, true
	case *appsv1.Deployment:
		return Object{"apps/v1", "Deployment", &o.ObjectMeta, &o.Spec.Template.Spec}, true
	case *appsv1.ReplicaSet:
		return Object{"apps/v1", "ReplicaSet", &o.ObjectMeta, &o.Spec.Template.Spec}, true
	case *appsv1.StatefulSet:
		return Object{"apps/v1", "StatefulSet", &o.ObjectMeta, &o.Spec.Template.Spec}, true
	case *appsv1.DaemonSet:
		return Object{"apps/v1", "DaemonSet", &o.ObjectMeta, &o.Spec.Template.Spec}, true
	case *batchv1.Job:
		return Object{"batch/v1", "Job", &o.ObjectMeta, &o.Spec.Template.Spec}, true
	case *batchv1.CronJob:
		return Object{"batch/v1", "CronJob", &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template.Spec}, true
	}
	return Object{}, false
}
