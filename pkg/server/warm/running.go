package warm

import (
	"iter"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
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

// Having returns the workloads of a namespace that have an image in the template of their
// pods or in a pod, in the order of their names, at most limit.
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

// top returns the top owner of a record that is known: a Deployment rather than its
// ReplicaSet, a CronJob rather than its Job, the object itself if it has no owner.
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
