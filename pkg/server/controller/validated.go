package controller

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// version identifies a spec: objects with the same version have the same one.
type version struct {
	source     policy.ObjectRef
	uid        types.UID
	generation int64
}

func versionOf(object v1beta1.Object) version {
	return version{source: resource.RefOf(object), uid: object.GetUID(), generation: object.GetGeneration()}
}

// byLevel returns the resources of each level: parts of o.Resources, which it sorts by level.
func byLevel(o *resource.Objects) map[verify.Namespace][]v1beta1.Object {
	slices.SortStableFunc(o.Resources, func(a, b v1beta1.Object) int { return cmp.Compare(levelOf(a), levelOf(b)) })
	levels := map[verify.Namespace][]v1beta1.Object{}
	for i, object := range o.Resources {
		own := len(levels[levelOf(object)])
		levels[levelOf(object)] = o.Resources[i-own : i+1]
	}
	return levels
}

// validated validates each spec that is read from the API server once, by this version's
// schemas: a cluster with older CRDs may store what these refuse.
type validated struct {
	schemas resource.Schemas
	mu      sync.Mutex
	// refusals holds why the schema refuses a spec, nil if it does not, of each level.
	refusals map[verify.Namespace]map[version]error
}

func newValidated(schemas resource.Schemas) *validated {
	return &validated{schemas: schemas, refusals: map[verify.Namespace]map[version]error{}}
}

// check replaces the resources that the schema refuses in o, which has those of all levels.
func (v *validated) check(ctx context.Context, o *resource.Objects) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for level, resources := range byLevel(o) {
		group.Go(func() error { v.checkLevel(ctx, level, resources); return nil })
	}
	_ = group.Wait() // no task returns an error
}

// checkLevel replaces those of the resources of a level that the schema refuses. It validates what it
// has not seen before, and forgets what is gone.
func (v *validated) checkLevel(ctx context.Context, level verify.Namespace, resources []v1beta1.Object) {
	ctx = context.WithoutCancel(ctx) // a shutdown must not refuse anything
	v.mu.Lock()
	before := v.refusals[level]
	v.mu.Unlock()
	seen := make(map[version]error, len(resources))
	for i, object := range resources {
		if resource.Missing(object) != nil {
			continue // without a spec it is broken anyway
		}
		of := versionOf(object)
		why, known := before[of]
		if !known || of.uid == "" {
			why = v.schemas.Refuses(ctx, object)
		}
		seen[of] = why
		if why != nil {
			resources[i] = resource.Refuse(object, why)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(resources) == 0 {
		delete(v.refusals, level)
		return
	}
	v.refusals[level] = seen
}
