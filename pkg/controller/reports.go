package controller

import (
	"maps"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// report is what compiling a namespace, or the cluster's resources, came to.
type report struct {
	generations map[policy.ObjectRef]int64 // of each resource, as it was compiled
	problems    map[policy.ObjectRef]resource.Problem
	policies    []string // names, in the order in which their rules are tried
	materials   map[policy.ObjectRef]v1alpha1.Material
}

// reports holds the newest report of each namespace, and whose statuses have
// not been written since.
type reports struct {
	mu    sync.Mutex
	of    map[verify.Namespace]report
	fresh map[verify.Namespace]bool
	wake  chan struct{} // holds one token while there is something fresh
}

func newReports() *reports {
	return &reports{of: map[verify.Namespace]report{}, fresh: map[verify.Namespace]bool{}, wake: make(chan struct{}, 1)}
}

// put replaces the report of one namespace.
func (r *reports) put(namespace verify.Namespace, o resource.Objects, problems []resource.Problem, snapshot *compile.Snapshot) {
	made := split(o, problems, snapshot)
	r.mu.Lock()
	if found, ok := made[namespace]; ok {
		r.of[namespace] = found
	} else {
		delete(r.of, namespace)
	}
	r.mu.Unlock()
	r.mark(namespace)
}

// replace replaces all reports.
func (r *reports) replace(o resource.Objects, problems []resource.Problem, snapshot *compile.Snapshot) {
	made := split(o, problems, snapshot)
	r.mu.Lock()
	r.of = made
	r.mu.Unlock()
	r.markAll()
}

// mark says that statuses of namespaces are to be written.
func (r *reports) mark(namespaces ...verify.Namespace) {
	if len(namespaces) == 0 {
		return
	}
	r.mu.Lock()
	for _, namespace := range namespaces {
		r.fresh[namespace] = true
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // there is a token already
	}
}

func (r *reports) markAll() {
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.of))
	r.mu.Unlock()
	r.mark(all...)
}

// take returns the namespaces that were marked, and forgets the marks.
func (r *reports) take() []verify.Namespace {
	r.mu.Lock()
	defer r.mu.Unlock()
	marked := slices.Sorted(maps.Keys(r.fresh))
	clear(r.fresh)
	return marked
}

func (r *reports) get(namespace verify.Namespace) (report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.of[namespace]
	return found, ok
}

// split sorts what was compiled by namespace.
func split(o resource.Objects, problems []resource.Problem, snapshot *compile.Snapshot) map[verify.Namespace]report {
	made := map[verify.Namespace]report{}
	at := func(namespace string) report {
		if _, ok := made[verify.Namespace(namespace)]; !ok {
			made[verify.Namespace(namespace)] = report{generations: map[policy.ObjectRef]int64{}, problems: map[policy.ObjectRef]resource.Problem{}}
		}
		return made[verify.Namespace(namespace)]
	}
	o.Each(func(source policy.ObjectRef, object v1alpha1.Object) {
		r := at(source.Namespace)
		r.generations[source] = object.GetGeneration()
		if _, ok := object.(*v1alpha1.VerificationPolicy); ok {
			r.policies = append(r.policies, source.Name)
		}
		if p, ok := object.(*v1alpha1.ClusterVerificationPolicy); ok && p.Spec.Enforcement != v1alpha1.EnforcementFloor {
			r.policies = append(r.policies, source.Name)
		}
		made[verify.Namespace(source.Namespace)] = r
	})
	for namespace, r := range made {
		slices.Sort(r.policies)
		if snapshot != nil {
			r.materials = snapshot.Material(namespace)
		}
		made[namespace] = r
	}
	for _, p := range problems {
		if r := at(p.Source.Namespace); r.problems[p.Source] == (resource.Problem{}) {
			r.problems[p.Source] = p
		}
	}
	return made
}
