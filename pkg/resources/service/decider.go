package service

import (
	"context"
	"fmt"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// Finder reports whether a namespace exists. An error means that this is unknown. A
// Finder is safe for concurrent use.
type Finder interface {
	Exists(ctx context.Context, namespace verify.Namespace) (bool, error)
}

// AnyNamespace is the Finder for resources that are not watched in a cluster: the cluster's
// resources apply to a namespace that is not in the snapshot.
type AnyNamespace struct{}

// Exists implements [Finder].
func (AnyNamespace) Exists(context.Context, verify.Namespace) (bool, error) { return true, nil }

// catchUp bounds the wait for an existing namespace to be in the snapshot: the watch
// may not have delivered its objects yet when its first pod is admitted.
const catchUp = time.Second

// Decider decides about images by namespace, with the rules of the current snapshot.
type Decider struct {
	set        *Set
	engine     *verify.Engine
	finder     Finder
	everywhere bool // finder is [AnyNamespace]
}

// NewDecider returns a Decider over the snapshots of set. It looks up namespaces that
// are not in the snapshot with finder, and denies if they do not exist.
func NewDecider(set *Set, engine *verify.Engine, finder Finder) *Decider {
	_, everywhere := finder.(AnyNamespace)
	return &Decider{set: set, engine: engine, finder: finder, everywhere: everywhere}
}

// Verify decides whether ref may be used in namespace. Before the first snapshot,
// every image is Undecided.
func (d *Decider) Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.config(ctx, namespace)
	if err == nil {
		return d.engine.Verify(ctx, config, ref)
	}
	return verify.Unanswered(namespace, ref, err)
}

// Recall returns the cached result of Verify, or false if there is none in memory.
// It never blocks.
func (d *Decider) Recall(namespace verify.Namespace, ref image.Reference) (verify.Result, bool) {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return verify.Result{}, false
	}
	return d.engine.Recall(config, ref)
}

// Account returns the account that a namespace's work counts against: its Tenant's, or its
// own. That of a namespace that the snapshot does not have is known, too, because a Tenant's
// prefix may cover it.
func (d *Decider) Account(namespace verify.Namespace) verify.Account {
	if snapshot := d.set.Snapshot(); snapshot != nil {
		return snapshot.Account(namespace)
	}
	return namespace.Account()
}

// covers reports whether snapshot can answer for a namespace.
func (d *Decider) covers(snapshot *compile.Snapshot, namespace verify.Namespace) bool {
	return namespace == verify.Cluster || d.everywhere || snapshot.Has(namespace)
}

// Resolve returns ref pinned to the current digest of its tag. The error is a
// [verify.PermanentError] if a retry cannot help.
func (d *Decider) Resolve(ctx context.Context, namespace verify.Namespace, ref image.Reference) (image.Reference, error) {
	config, err := d.config(ctx, namespace)
	if err != nil {
		return image.Reference{}, err
	}
	return d.engine.Resolve(ctx, config, ref)
}

// config returns the configuration of a namespace. It does not treat a namespace
// whose objects have not arrived yet as one without objects.
func (d *Decider) config(ctx context.Context, namespace verify.Namespace) (*verify.Config, error) {
	snapshot := d.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case d.covers(snapshot, namespace):
		return snapshot.For(namespace), nil
	}
	if d.finder == nil { // nothing says that it exists
		return nil, verify.NamespaceNotFound(namespace)
	}
	exists, err := d.finder.Exists(ctx, namespace)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for namespace %s: %w", namespace, err)
	case !exists:
		return nil, verify.NamespaceNotFound(namespace)
	}
	return d.await(ctx, namespace)
}

// await waits until the snapshot has a namespace that exists.
func (d *Decider) await(ctx context.Context, namespace verify.Namespace) (*verify.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	for {
		snapshot, swapped := d.set.watch()
		if snapshot.Has(namespace) {
			return snapshot.For(namespace), nil
		}
		select {
		case <-swapped:
		case <-ctx.Done():
			return nil, fmt.Errorf("namespace %s is new: %w", namespace, ErrNotReady)
		}
	}
}
