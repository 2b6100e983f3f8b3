package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

var _ reconcile.TypedReconciler[verify.Namespace] = (*Controller)(nil)

// Reconcile compiles one namespace anew and puts it in force; a change of the
// cluster's resources, and the start, compile everything. Calls never
// overlap, so that a later state is never replaced by an earlier one.
func (c *Controller) Reconcile(ctx context.Context, namespace verify.Namespace) (reconcile.Result, error) {
	switch {
	case namespace == verify.Cluster:
		return c.compileAll(ctx)
	case c.set.Snapshot() == nil:
		// Everything is compiled at first, and once for the many that ask.
		c.enqueue(verify.Cluster)
		return reconcile.Result{}, nil
	}
	return c.compileOne(ctx, namespace)
}

func (c *Controller) compileAll(ctx context.Context) (reconcile.Result, error) {
	objects, err := c.readAll(ctx)
	if err != nil {
		return reconcile.Result{}, err // try again later, the last snapshot stays in force
	}
	first := c.set.Snapshot() == nil
	references := compile.References(objects)
	c.secrets.set.KeepOnly(references)
	var wait time.Duration
	for namespace, wanted := range references {
		pending := c.secrets.set.Want(namespace, wanted)
		// Once something is in force, one tenant's reading holds up no other's change.
		if first || namespace == verify.Cluster {
			wait = max(wait, pending)
		}
	}
	if first && wait > 0 {
		wait = time.Until(c.started.Add(firstReadAtStart))
	}
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // or sooner, when the reading ends
	}
	for _, wanted := range references {
		c.secrets.fill(&objects, wanted)
	}
	fetched, wait := c.fetchAll(objects, first)
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // or sooner, when it is fetched
	}
	snapshot, problems := compile.New(objects, fetched, c.outside)
	c.set.Swap(snapshot)
	c.reports.replace(objects, problems, snapshot)
	if first {
		c.log.WithField("namespaces", len(objects.Namespaces)).WithField("problems", len(problems)).Info("resources are in force")
	}
	return reconcile.Result{}, nil // in force, done
}

func (c *Controller) compileOne(ctx context.Context, namespace verify.Namespace) (reconcile.Result, error) {
	objects, err := c.readOne(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err // try again later
	}
	wanted := compile.References(objects)[namespace]
	if wait := c.secrets.set.Want(namespace, wanted); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // or sooner, when the reading ends
	}
	c.secrets.fill(&objects, wanted)
	fetched, wait := c.fetchOne(objects, namespace)
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // or sooner, when it is fetched
	}
	snapshot, problems := c.set.Snapshot().With(namespace, objects, fetched)
	c.set.Swap(snapshot)
	c.reports.put(namespace, objects, problems, snapshot)
	if len(objects.Namespaces) == 0 && c.options.Forget != nil {
		c.options.Forget(namespace) // after the swap, so that nothing of it is kept anew
	}
	return reconcile.Result{}, nil // in force, done
}

// fetchAll returns what is known of what objects keep outside the cluster, and how
// long to wait for what has not been tried: at the start for all, later for the
// cluster's only, because one tenant holds up no other's change.
func (c *Controller) fetchAll(objects resource.Objects, first bool) (compile.Fetched, time.Duration) {
	if c.options.Remote == nil {
		return nil, 0
	}
	wanted := compile.Externals(objects)
	c.options.Remote.KeepOnly(wanted)
	var wait time.Duration
	for namespace, sources := range wanted {
		pending := c.options.Remote.Want(namespace, sources)
		if first || namespace == verify.Cluster {
			wait = max(wait, pending)
		}
	}
	return c.options.Remote.Known(slices.Concat(slices.Collect(maps.Values(wanted))...)), wait
}

// fetchOne is fetchAll for one namespace.
func (c *Controller) fetchOne(objects resource.Objects, namespace verify.Namespace) (compile.Fetched, time.Duration) {
	if c.options.Remote == nil {
		return nil, 0
	}
	sources := compile.Externals(objects)[namespace]
	wait := c.options.Remote.Want(namespace, sources)
	return c.options.Remote.Known(sources), wait
}
