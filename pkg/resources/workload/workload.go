// Package workload finds the images of a pod and the pods of a workload, for everything that
// inspects running pods. It is pure, and does not parse references: it returns them as users
// wrote them.
package workload

import (
	"cmp"
	"iter"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ContainerType is the type of a pod's field with an image.
type ContainerType string

// The types of fields with an image.
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

// Images returns the images of a pod in the order of its fields: init containers, containers,
// ephemeral containers, and volumes of type image. It omits containers without an image or
// with a blank one, which OpenShift's image triggers replace in workloads and the API server
// refuses in Pods.
func Images(spec *corev1.PodSpec) iter.Seq[Image] {
	return func(yield func(Image) bool) {
		give := func(of ContainerType, name, image string) bool {
			return strings.TrimSpace(image) == "" || yield(Image{of, name, image})
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

// Object is a Pod or workload, with the fields that determine what runs.
type Object struct {
	APIVersion, Kind string
	Meta             *metav1.ObjectMeta
	Pod              *corev1.PodSpec // or that of its pods
}

// Of returns a Pod or workload as Object. It returns false for objects of other kinds,
// including PodTemplates, which nothing runs by themselves.
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

// Ref names a workload or Pod of a namespace. The zero value names none.
type Ref struct {
	APIVersion, Kind, Name string
	UID                    types.UID
}

// Compare orders workloads by kind and name.
func Compare(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.UID, b.UID))
}

// Running is an image of a running pod.
type Running struct {
	// Of is the top owner of the pod as far as it is known: the pod itself if it has none.
	Of            Ref
	ContainerType ContainerType
	Container     string // or the name of the volume
	Image         string // normalised
}

// maxOwnerBytes bounds each field of an owner. The API server does not, but objects that
// exist have shorter ones.
const maxOwnerBytes = 317

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '!' || r > '~' }) < 0
}

// Owner returns the controller of an object, the zero value if it has none, or an impossible
// one.
func Owner(meta *metav1.ObjectMeta) Ref {
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || len(owner.APIVersion) > maxOwnerBytes || len(owner.Kind) > maxOwnerBytes || len(owner.Name) > maxOwnerBytes ||
		len(owner.UID) > maxOwnerBytes ||
		!isPrintable(owner.APIVersion+owner.Kind+owner.Name+string(owner.UID)) {
		return Ref{}
	}
	return Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
}

// templateHash is the label by which Deployments distinguish their ReplicaSets and pods.
const templateHash = "pod-template-hash"

// Deployment returns the name of the Deployment that probably owns a ReplicaSet's pod, "" if
// there is none. A Deployment names its ReplicaSets after itself and the hash of their
// template, so ReplicaSets need no watch; the caller checks that the Deployment exists.
func Deployment(pod *metav1.ObjectMeta) string {
	owner, hash := Owner(pod), pod.Labels[templateHash]
	name, ok := strings.CutSuffix(owner.Name, "-"+hash)
	if owner.Kind != "ReplicaSet" || hash == "" || !ok {
		return ""
	}
	return name
}
