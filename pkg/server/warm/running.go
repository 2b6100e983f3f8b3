package warm

import (
	"iter"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// Namespaces returns those with pods, and false until all objects have been read.
func (w *Watcher) Namespaces() ([]verify.Namespace, bool) {
	for _, informer := range w.informers {
		if !informer.HasSynced() {
			return nil, false
		}
	}
	var found []verify.Namespace
	for _, name := range w.pods.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) {
		found = append(found, verify.Namespace(name))
	}
	return found, true
}

// Running returns the images of the pods of a namespace, for each container of a workload:
// as often as the workload has pods.
func (w *Watcher) Running(namespace verify.Namespace) iter.Seq[workload.Running] {
	return func(yield func(workload.Running) bool) {
		for _, r := range recordsBy(w.pods, cache.NamespaceIndex, string(namespace)) {
			if len(r.uses) == 0 {
				continue
			}
			of := w.top(r)
			for _, u := range r.uses {
				if !yield(workload.Running{Of: of, ContainerType: u.container, Container: u.name, Image: u.image}) {
					return
				}
			}
		}
	}
}

// Having returns the workloads of a namespace with an image in their pod template or in a
// pod, ordered by name, at most limit.
func (w *Watcher) Having(namespace verify.Namespace, image string, limit int) []workload.Ref {
	var found []workload.Ref // few, though an image may be in thousands of pods
	for _, informer := range w.informers {
		for _, r := range recordsBy(informer, byImage, string(namespace)+"/"+image) {
			of := w.top(r)
			if i, known := slices.BinarySearchFunc(found, of, workload.Compare); !known && i < limit {
				found = slices.Insert(found, i, of)
				found = found[:min(len(found), limit)]
			}
		}
	}
	return found
}

func recordsBy(informer cache.SharedIndexInformer, index, value string) []*record {
	objects, err := informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil // every informer has the index
	}
	records := make([]*record, 0, len(objects))
	for _, object := range objects {
		if r, ok := object.(*record); ok {
			records = append(records, r)
		}
	}
	return records
}

// top returns the known top owner of a record: a Deployment rather than its ReplicaSet, a
// CronJob rather than its Job, the object itself if it has no owner.
func (w *Watcher) top(r *record) workload.Ref {
	if of, ok := w.find("Deployment", r.Namespace, r.deployment); ok {
		return of.self()
	}
	if r.owner == (workload.Ref{}) {
		return r.self()
	}
	if job, ok := w.find("Job", r.Namespace, r.owner.Name); ok && r.owner.Kind == "Job" && job.owner != (workload.Ref{}) {
		return job.owner
	}
	return r.owner
}

func (w *Watcher) find(kind, namespace, name string) (*record, bool) {
	informer := w.byKind[kind]
	if informer == nil || name == "" {
		return nil, false
	}
	object, exists, err := informer.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil, false
	}
	r, ok := object.(*record)
	return r, ok
}

func (r *record) self() workload.Ref {
	return workload.Ref{APIVersion: r.apiVersion, Kind: r.kind, Name: r.Name, UID: r.UID}
}

// record is the part of an object that stays in memory: its identity, its images and, for
// reports, their containers. A cluster has many pods, each of which takes kilobytes.
type record struct {
	metav1.ObjectMeta
	images []string // normalised, each once
	uses   []use    // of a pod
	// apiVersion and kind are the fields that the object itself lacks.
	apiVersion, kind string
	// owner is the controller of the object, deployment the probable Deployment of a pod's
	// ReplicaSet.
	owner      workload.Ref
	deployment string
}

// use is a container or volume with an image.
type use struct {
	container   workload.ContainerType
	name, image string
}

// keep turns an object into its record. It is the transform of every informer, and returns
// records and unknown objects unchanged.
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
	r := &record{apiVersion: of.APIVersion, kind: of.Kind, owner: unique.Make(workload.Owner(of.Meta)).Value(), ObjectMeta: metav1.ObjectMeta{
		Name: of.Meta.Name, Namespace: share(of.Meta.Namespace), UID: of.Meta.UID, ResourceVersion: of.Meta.ResourceVersion}}
	r.images, r.uses = imagesOf(of.Pod)
	if isPod {
		r.deployment = share(workload.Deployment(of.Meta))
	} else {
		r.uses = nil
	}
	return r, nil
}

// share returns s in memory shared by equal strings: pods of a workload have the same images,
// containers and owners.
func share(s string) string { return unique.Make(s).Value() }

// imagesOf returns the images of a pod in the order of its fields, with their containers. It
// skips malformed references, which cannot be verified.
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
