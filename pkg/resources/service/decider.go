package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// Finder reports whether a namespace exists. An error means that this is unknown. A Finder is
// safe for concurrent use.
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

// Set returns the holder of the current snapshot. A controller swaps snapshots itself;
// others use [Service.Apply].
func (d *Decider) Set() *Set { return d.set }

// Verify decides whether ref may be used in namespace. Before the first snapshot,
// every image is Undecided.
func (d *Decider) Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.config(ctx, namespace)
	if err == nil {
		return d.engine.Verify(ctx, config, ref)
	}
	return verify.Unanswered(namespace, ref, err)
}

// Unproven decides about ref as if it had no evidence, by rules and exceptions alone.
func (d *Decider) Unproven(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.config(ctx, namespace)
	if err == nil {
		return d.engine.Unproven(ctx, config, ref)
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

// Account returns the account that pays for a namespace's work: its Tenant's, or its own. It
// also works for a namespace outside the snapshot, because a Tenant's prefix may cover it.
func (d *Decider) Account(namespace verify.Namespace) verify.Account {
	if snapshot := d.set.Snapshot(); snapshot != nil {
		return snapshot.Account(namespace)
	}
	return namespace.Account()
}

// Contacts returns the contacts of policies that apply in a namespace. It takes names as [policy.ObjectRef.String]
// returns them, and keeps their order; "" means that no policy is the cause. A policy without a contact, or one that
// does not apply, has none.
func (d *Decider) Contacts(namespace verify.Namespace, names []string) []string {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return nil
	}
	return config.ContactsOf(names)
}

// covers reports whether snapshot can answer for a namespace.
func (d *Decider) covers(snapshot *resolve.Snapshot, namespace verify.Namespace) bool {
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

// config returns the configuration of a namespace. It does not mistake a namespace whose
// objects have not arrived yet for one without objects.
func (d *Decider) config(ctx context.Context, namespace verify.Namespace) (*verify.Config, error) {
	snapshot := d.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case d.covers(snapshot, namespace):
		return snapshot.Config(namespace)
	}
	if d.finder == nil { // nothing says that it exists
		return nil, verify.NamespaceNotFound(namespace)
	}
	exists, err := d.finder.Exists(ctx, namespace)
	switch {
	case err != nil:
		return nil, verify.Unfinished(fmt.Errorf("look for namespace %s: %w", namespace, err))
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
			return snapshot.Config(namespace)
		}
		select {
		case <-swapped:
		case <-ctx.Done():
			return nil, fmt.Errorf("namespace %s is new: %w", namespace, ErrNotReady)
		}
	}
}

// ErrNotReady means that no resources have been compiled yet. Verdicts are Undecided
// until then.
var ErrNotReady = verify.Unfinished(errors.New("resources are not loaded yet, try again"))

// Set holds the current Snapshot. Its zero value is not ready. It is safe for
// concurrent use; readers never block.
type Set struct {
	current atomic.Pointer[resolve.Snapshot]
	changed atomic.Int64 // when current was swapped in, in Unix nanoseconds

	mu      sync.Mutex
	swapped chan struct{} // closed by the next Swap; nil without waiters
}

// Swap replaces the current snapshot. Requests in flight finish with the previous snapshot.
func (s *Set) Swap(snapshot *resolve.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Store(snapshot)
	s.changed.Store(time.Now().UnixNano())
	if s.swapped != nil {
		close(s.swapped)
		s.swapped = nil
	}
}

// watch returns the current snapshot, and a channel that the next Swap closes.
func (s *Set) watch() (*resolve.Snapshot, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swapped == nil {
		s.swapped = make(chan struct{})
	}
	return s.current.Load(), s.swapped
}

// For returns the current configuration of a namespace, or of cluster resources alone
// for [verify.Cluster]. It returns [ErrNotReady] before the first Swap.
func (s *Set) For(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := s.current.Load()
	if snapshot == nil {
		return nil, ErrNotReady
	}
	return snapshot.For(namespace), nil
}

// Snapshot returns the current snapshot, nil before the first Swap.
func (s *Set) Snapshot() *resolve.Snapshot { return s.current.Load() }

// Changed returns when the current snapshot was swapped in, the zero time before the first
// Swap.
func (s *Set) Changed() time.Time {
	at := s.changed.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// Ready returns nil after the first Swap, and [ErrNotReady] before.
func (s *Set) Ready() error {
	if s.current.Load() == nil {
		return ErrNotReady
	}
	return nil
}

// Warm is Verify at low priority ([verify.Engine.Warm]). An image in a namespace that
// is not in the snapshot is Undecided.
func (d *Decider) Warm(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return verify.Unanswered(namespace, ref, err)
	}
	return d.engine.Warm(ctx, config, ref)
}

// Refresh is Warm that bypasses the cache ([verify.Engine.Refresh]).
func (d *Decider) Refresh(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return verify.Unanswered(namespace, ref, err)
	}
	return d.engine.Refresh(ctx, config, ref)
}

// currentConfig returns the configuration of a namespace in the snapshot. It does not
// look up or wait for others.
func (d *Decider) currentConfig(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := d.set.Snapshot()
	switch {
	case snapshot == nil:
		return nil, ErrNotReady
	case !d.covers(snapshot, namespace):
		return nil, fmt.Errorf("namespace %s is not in the snapshot: %w", namespace, ErrNotReady)
	}
	return snapshot.Config(namespace)
}

// Generation identifies a namespace's rules, trust material and exceptions in force, "" if
// the namespace is not in the snapshot. Another one may give other answers.
func (d *Decider) Generation(namespace verify.Namespace) string {
	config, err := d.currentConfig(namespace)
	if err != nil {
		return ""
	}
	return d.engine.Revision(config)
}
