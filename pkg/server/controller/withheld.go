package controller

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/prefetch"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// withheldSpecs reads specs again that the cache dropped for want of room, once their
// namespace and its Tenant have room for all. The cache itself only reads an object again when it changes.
type withheldSpecs struct {
	ledger *resource.Ledger // of what the cache keeps
	set    *prefetch.Set[verify.Namespace, version, prefetch.Fetched[v1beta1.Object]]
}

// version identifies a spec: objects with the same version have the same one.
type version struct {
	source     policy.ObjectRef
	uid        types.UID
	generation int64
}

func versionOf(object v1beta1.Object) version {
	return version{source: resource.RefOf(object), uid: object.GetUID(), generation: object.GetGeneration()}
}

// newWithheldSpecs returns a withheldSpecs that reads from the API server, and calls changed
// when a spec of a namespace has come.
func newWithheldSpecs(api client.Reader, ledger *resource.Ledger, changed func(verify.Namespace)) *withheldSpecs {
	fetch := func(ctx context.Context, wanted version) (v1beta1.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
		defer cancel()
		kind, ok := v1beta1.KindNamed(wanted.source.Kind)
		if !ok {
			return nil, fmt.Errorf("read the spec of %s: no such kind", wanted.source)
		}
		object := kind.New()
		if err := api.Get(ctx, client.ObjectKey{Namespace: wanted.source.Namespace, Name: wanted.source.Name}, object); err != nil {
			return nil, fmt.Errorf("read the spec of %s: %w", wanted.source, err)
		}
		if versionOf(object) != wanted {
			return nil, fmt.Errorf("read the spec of %s: it has changed since", wanted.source) // the cache will see it
		}
		return object, resource.Keep(object)
	}
	set := prefetch.New[verify.Namespace](prefetch.Poll(fetch, time.Now, prefetch.PollOptions[verify.Namespace, version]{
		MaxFetches: specsAtOnce, MaxFetchesPerOwner: 1, Refresh: func(version) time.Duration { return keepSpec },
		Owner: func(v version) verify.Namespace { return verify.Namespace(v.source.Namespace) },
	}), time.Now, prefetch.Options[prefetch.Fetched[v1beta1.Object]]{
		MaxKeys: maxWithheld, FirstWait: firstRead,
		Answers: func(found prefetch.Fetched[v1beta1.Object]) bool { return found.Value != nil },
	})
	set.Notify(changed)
	return &withheldSpecs{ledger: ledger, set: set}
}

// fill tells the ledger what the cache keeps of a namespace, and completes o, which has all
// resources of the namespace. crowded is as for [resource.ReadAgain]. It returns how long to
// wait for specs that have not come yet.
func (w *withheldSpecs) fill(namespace verify.Namespace, o *resource.Objects, crowded func(resource.Share, int) bool) (wait time.Duration) {
	w.ledger.Settle(string(namespace), o.Resources)
	missing := map[v1beta1.Object]bool{}
	var wanted []version
	for _, object := range resource.ReadAgain(o.Resources, crowded) {
		missing[object] = true
		wanted = append(wanted, versionOf(object))
	}
	wait = w.set.Want(namespace, wanted)
	for i, object := range o.Resources {
		if !missing[object] {
			continue
		}
		if found, err := w.set.Known(versionOf(object)); err == nil && found.Value != nil {
			o.Resources[i] = found.Value
		}
	}
	return wait
}

// fillAll is fill for the resources of all namespaces. It reports whether to wait.
func (w *withheldSpecs) fillAll(o *resource.Objects) (pending bool) {
	all := *o
	all.Resources = slices.Clone(o.Resources)
	w.ledger.Relabel(resource.LabelsOf(o.Namespaces))
	measured := sync.OnceValue(func() *resolve.Snapshot { return resolve.Measured(all) })
	crowded := func(share resource.Share, size int) bool { return measured().Crowded(share, size) }
	for namespace, resources := range byLevel(o) {
		pending = w.fill(namespace, &resource.Objects{Resources: resources}, crowded) > 0 || pending
	}
	return pending
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
