package controller

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// validated validates each spec that is read from the API server once, by this version's
// schemas: a cluster with older CRDs may store what these refuse.
type validated struct {
	schemas *schema.Set
	mu      sync.Mutex
	// refusals holds why the schema refuses a spec, nil if it does not, of each level.
	refusals map[verify.Namespace]map[version]error
}

func newValidated() *validated {
	return &validated{schemas: schema.New(), refusals: map[verify.Namespace]map[version]error{}}
}

// check replaces the resources that the schema refuses in o, which has those of all levels.
func (v *validated) check(ctx context.Context, o *resource.Objects) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for level, resources := range byLevel(o) {
		group.Go(func() error { v.of(ctx, level, resources); return nil })
	}
	_ = group.Wait() // no task returns an error
}

// checkLevel is check for o with all resources of one level.
func (v *validated) checkLevel(ctx context.Context, level verify.Namespace, o *resource.Objects) {
	v.of(ctx, level, o.Resources)
}

// of replaces those of the resources of a level that the schema refuses. It validates what it
// has not seen before, and forgets what is gone.
func (v *validated) of(ctx context.Context, level verify.Namespace, resources []v1beta1.Object) {
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
			resources[i] = resource.Refuse(object, fmt.Errorf("%s%w", schema.Refused, why))
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
