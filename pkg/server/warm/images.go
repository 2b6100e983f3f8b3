package warm

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// record is what stays in memory of an object: its identity, its images and, for reports,
// who has them. A cluster has many pods, and each takes kilobytes.
type record struct {
	metav1.ObjectMeta
	images []string // normalised, each once
	uses   []use    // of a pod
	// apiVersion and kind are what the object itself leaves out.
	apiVersion, kind string
	// owner is the controller of the object, deployment the one that a ReplicaSet of a pod
	// seems to be of.
	owner      workload.Ref
	deployment string
}

// use is a container or volume that has an image.
type use struct {
	container   workload.ContainerType
	name, image string
}

// keep turns an object into its record. It is the transform of every informer, and returns
// records and unknown objects as they are.
func keep(object any) (any, error) {
	o, ok := object.(runtime.Object)
	if !ok {
		return object, nil
	}
	of, ok := workload.Of(o)
	if !ok {
		return object, nil
	}
	pod, isPod := o.(*corev1.Pod)
	if isPod && pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
		of.Pod = &corev1.PodSpec{}
	}
	r := newRecord(of)
	if isPod {
		r.deployment = share(workload.Deployment(of.Meta))
	} else {
		r.uses = nil
	}
	return r, nil
}

func newRecord(of workload.Object) *record {
	r := &record{apiVersion: of.APIVersion, kind: of.Kind, owner: shareRef(workload.Owner(of.Meta)), ObjectMeta: metav1.ObjectMeta{
		Name: of.Meta.Name, Namespace: share(of.Meta.Namespace), UID: of.Meta.UID, ResourceVersion: of.Meta.ResourceVersion}}
	r.images, r.uses = imagesOf(of.Pod)
	return r
}

// share returns s in memory that equal strings share: pods of a workload have the same
// images, containers and owners.
func share(s string) string { return unique.Make(s).Value() }

func shareRef(ref workload.Ref) workload.Ref { return unique.Make(ref).Value() }

// imagesOf returns the images of a pod in the order of its fields, and who has them. It
// skips malformed references: there is nothing to verify.
func imagesOf(spec *corev1.PodSpec) (images []string, uses []use) {
	for named := range workload.Images(spec) {
		if len(images) >= maxImages || len(uses) >= maxUses {
			break
		}
		ref, err := image.Parse(named.Image)
		if err != nil {
			continue
		}
		name := share(ref.String())
		uses = append(uses, use{named.ContainerType, share(named.Name), name})
		if !slices.Contains(images, name) {
			images = append(images, name)
		}
	}
	return images, slices.Clip(uses)
}
