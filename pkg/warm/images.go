package warm

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/workload"
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
	o, ok := object.(runtime.Object)
	if !ok {
		return object, nil
	}
	meta, spec, ok := workload.Of(o)
	if !ok {
		return object, nil
	}
	if pod, ok := o.(*corev1.Pod); ok && pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
		spec = &corev1.PodSpec{}
	}
	return newRecord(meta, spec), nil
}

func newRecord(meta *metav1.ObjectMeta, spec *corev1.PodSpec) *record {
	return &record{images: imagesOf(spec), ObjectMeta: metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion}}
}

// imagesOf returns the images of a pod in the order of its fields. It skips malformed
// references: there is nothing to verify.
func imagesOf(spec *corev1.PodSpec) []string {
	var found []string
	for named := range workload.Images(spec) {
		if len(found) >= maxImages {
			break
		}
		if ref, err := image.Parse(named.Image); err == nil && !slices.Contains(found, ref.String()) {
			found = append(found, ref.String())
		}
	}
	return found
}
