package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

var _ reconcile.TypedReconciler[verify.Namespace] = (*Controller)(nil)

// Reconcile recompiles one namespace, or the cluster's resources, and swaps in the
// resulting snapshot. The first call compiles everything. Calls never overlap, so an
// older state never replaces a newer one.
func (c *Controller) Reconcile(ctx context.Context, namespace verify.Namespace) (reconcile.Result, error) {
	switch {
	case c.set.Snapshot() != nil:
		return c.compileLevel(ctx, namespace)
	case namespace == verify.Cluster:
		return c.compileAll(ctx)
	}
	// Compile everything first, and only once for all queued namespaces.
	c.enqueue(verify.Cluster)
	return reconcile.Result{}, nil
}

func (c *Controller) compileAll(ctx context.Context) (reconcile.Result, error) {
	objects, err := c.reader.all(ctx)
	if err != nil {
		return reconcile.Result{}, err // retry later; there is no snapshot yet
	}
	c.specs.Clear()
	for level, resources := range byLevel(&objects) {
		c.specs.Settle(string(level), resources)
	}
	c.schemas.check(ctx, &objects)
	references := c.secrets.references(objects)
	c.secrets.set.KeepOnly(references)
	pending := false
	for namespace, wanted := range references {
		pending = c.secrets.set.Want(namespace, wanted) > 0 || pending
	}
	remaining := time.Until(c.started.Add(firstReadAtStart))
	if pending && remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil // or sooner, once all objects are read
	}
	for _, wanted := range references {
		c.secrets.fill(&objects, wanted)
	}
	levels := resolve.Group(objects)
	fetched, wait := c.fetchAll(levels)
	if wait > 0 && remaining > 0 { // new sources all the time must not delay the start
		return reconcile.Result{RequeueAfter: min(wait, remaining)}, nil // or sooner, once the data is fetched
	}
	empty := resolve.Empty(c.outside)
	snapshot, problems := empty.Next(levels, fetched)
	c.swap(snapshot, empty)
	c.markAll()
	c.log.WithField("namespaces", len(objects.Namespaces)).WithField("problems", len(problems)).Info("resources are in force")
	return reconcile.Result{}, nil // done
}

// compileLevel recompiles one namespace, or the cluster's resources and the namespaces
// that they affect.
func (c *Controller) compileLevel(ctx context.Context, level verify.Namespace) (reconcile.Result, error) {
	if wait := c.pace.wait(level, time.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // others are next
	}
	objects, err := c.reader.level(ctx, level)
	if err != nil {
		return reconcile.Result{}, err // retry later; the last snapshot stays
	}
	checked := time.Now()
	c.readDropped(ctx, level, objects.Resources)
	c.schemas.checkLevel(ctx, level, objects.Resources)
	validating := time.Since(checked)
	c.pace.validated(level, validating, time.Now())
	wanted := c.secrets.references(objects)[level]
	if wait := c.pace.postpone(level, c.secrets.set.Want(level, wanted), time.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // or sooner, once all objects are read
	}
	c.secrets.fill(&objects, wanted)
	levels := resolve.Group(objects)
	fetched, wait := c.fetchOne(levels, level)
	if wait := c.pace.postpone(level, wait, time.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // or sooner, once the data is fetched
	}
	began := time.Now().Add(-validating)
	c.compileNow(level, levels, fetched)
	if level != verify.Cluster && len(objects.Namespaces) == 0 {
		c.notified.forget(level)
		if c.options.Forget != nil {
			c.options.Forget(level) // after the swap, so that no new entries are cached
		}
	}
	c.pace.compiled(level, began, time.Now())
	return reconcile.Result{}, nil // done
}

func (c *Controller) compileNow(level verify.Namespace, levels resolve.Levels, fetched external.Fetched) {
	before := c.set.Snapshot()
	snapshot, _ := before.Next(levels.Only(level), fetched)
	changed := c.swap(snapshot, before)
	if level == verify.Cluster {
		c.markAll()
		return
	}
	c.outdated.mark(level, before.HomeOf(level), snapshot.HomeOf(level))
	c.outdated.mark(changed...)
	c.outdated.markCluster()
}

// swap puts a snapshot in force. It returns the namespaces that it changes, and schedules those of
// which specs have to be read.
func (c *Controller) swap(snapshot, before *resolve.Snapshot) (changed []verify.Namespace) {
	c.set.Swap(snapshot)
	c.hold(snapshot.Tenants())
	changed = snapshot.ChangedSince(before)
	for _, namespace := range changed {
		if queue := c.queue.Load(); queue != nil && snapshot.Lacks(namespace) {
			(*queue).AddAfter(namespace, readAgain)
		}
	}
	return changed
}

// hold says which Tenant holds each namespace to whatever bounds what is kept of them.
func (c *Controller) hold(tenants *resource.Tenants) {
	c.specs.Hold(tenants)
	c.secrets.room.Hold(tenants)
}

// readDropped reads those resources of a namespace whose specs the cache had no room for, though
// all fit by now. The cache itself gets a spec again with the next change of its object, such as
// of its status.
func (c *Controller) readDropped(ctx context.Context, level verify.Namespace, resources []v1beta1.Object) {
	if level == verify.Cluster {
		return // all of its specs are kept
	}
	ctx, cancel := context.WithTimeout(ctx, readingTurn)
	defer cancel()
	for _, object := range c.specs.Settle(string(level), resources) {
		kind, ok := v1beta1.KindNamed(resource.RefOf(object).Kind)
		if !ok {
			continue
		}
		whole := kind.New()
		err := c.api.Get(ctx, client.ObjectKeyFromObject(object), whole)                        // what fails is tried again: see swap
		if err == nil && versionOf(whole) == versionOf(object) && resource.Keep(whole) == nil { // else the cache will see the change
			resources[slices.Index(resources, object)] = whole
		}
	}
}

// fetchAll returns the external data of objects, and how long to wait for data whose
// fetch has not completed once.
func (c *Controller) fetchAll(levels resolve.Levels) (external.Fetched, time.Duration) {
	if c.options.External == nil {
		return nil, 0
	}
	wanted := levels.Externals()
	c.options.External.KeepOnly(wanted)
	var wait time.Duration
	for namespace, sources := range wanted {
		wait = max(wait, c.options.External.Want(namespace, sources))
	}
	return c.options.External.Known(slices.Concat(slices.Collect(maps.Values(wanted))...)), wait
}

// fetchOne is fetchAll for one level. It keeps the sources of others.
func (c *Controller) fetchOne(levels resolve.Levels, level verify.Namespace) (external.Fetched, time.Duration) {
	if c.options.External == nil {
		return nil, 0
	}
	sources := levels.Externals()[level]
	wait := c.options.External.Want(level, sources)
	return c.options.External.Known(sources), wait
}
