// Package external fetches trust material and registry credentials that are kept
// elsewhere: in HashiCorp Vault, in key management services, in a TUF repository,
// with cloud registries. It does so beside requests, again and again, and keeps
// the last good answer for a time. What a tenant names is only asked with the
// tenant's own credentials, and only at hosts that a cluster admin lists.
package external

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Fetch gets material, within the time of ctx.
type Fetch func(ctx context.Context, source Source) ([]byte, error)

// Options configure a [Keeper]; zero values are the defaults.
type Options struct {
	// Hosts, as host or host:port, that tenants' resources may name.
	Hosts []string
	// Refresh is how often material is fetched (5 minutes), Keep how long the last
	// good one counts (24 hours).
	Refresh, Keep time.Duration
	// Fetch replaces how material is fetched, for tests.
	Fetch map[Kind]Fetch
}

// Keeper has sources fetched and remembers what came. It is safe for concurrent
// use; nobody waits for a network but in [Keeper.Await].
type Keeper struct {
	options Options
	now     func() time.Time
	places  chan struct{} // for fetches under way
	shared  sharedRoot

	mu      sync.Mutex
	changed func(verify.Namespace)
	begin   func(*entry) // nil until Run
	entries map[Source]*entry
	busy    map[verify.Namespace]chan struct{}
}

type entry struct {
	source Source
	since  time.Time
	stop   context.CancelFunc
	tried  chan struct{} // closed after the first fetch

	// Guarded by Keeper.mu.
	material Material
	told     Material // what the owner was told last
}

// New returns a Keeper that fetches while [Keeper.Run] runs.
func New(options Options, now func() time.Time) *Keeper {
	if options.Refresh <= 0 {
		options.Refresh = defaultRefresh
	}
	if options.Keep <= 0 {
		options.Keep = defaultKeep
	}
	if options.Fetch == nil {
		options.Fetch = fetchers()
	}
	return &Keeper{options: options, now: now, places: make(chan struct{}, maxFetches), changed: func(verify.Namespace) {},
		entries: map[Source]*entry{}, busy: map[verify.Namespace]chan struct{}{}}
}

// Notify sets what is called, not under a lock, when material of a namespace has
// changed, or has become too old, or cannot be fetched for another reason.
func (k *Keeper) Notify(changed func(verify.Namespace)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = changed
}

// Want says what a namespace needs from now on; what it needed before is dropped.
// It returns how long to wait for what has not been tried yet, 0 if everything
// has, or has had its time.
func (k *Keeper) Want(namespace verify.Namespace, sources []Source) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted := map[Source]bool{}
	for _, source := range sources[:min(len(sources), maxSources)] {
		wanted[source] = true
	}
	for source, e := range k.entries {
		if source.Owner == namespace && !wanted[source] {
			k.drop(e)
		}
	}
	var pending time.Duration
	for source := range wanted {
		e := k.entries[source]
		if e == nil {
			e = &entry{source: source, since: k.now(), tried: make(chan struct{})}
			k.entries[source] = e
			if k.begin != nil {
				k.begin(e)
			}
		}
		select {
		case <-e.tried:
		default:
			pending = max(pending, e.since.Add(firstWait).Sub(k.now()))
		}
	}
	return pending
}

// KeepOnly drops what namespaces other than the given ones needed.
func (k *Keeper) KeepOnly(needed map[verify.Namespace][]Source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for source, e := range maps.Clone(k.entries) {
		if _, still := needed[source.Owner]; !still {
			k.drop(e)
		}
	}
}

func (k *Keeper) drop(e *entry) {
	if e.stop != nil {
		e.stop()
	}
	delete(k.entries, e.source)
	for source := range k.entries {
		if source.Owner == e.source.Owner {
			return
		}
	}
	delete(k.busy, e.source.Owner)
}

// Known returns what is known of sources that are wanted. One that is not, because
// the namespace wants too many, is an error of its own.
func (k *Keeper) Known(sources []Source) map[Source]Material {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := make(map[Source]Material, len(sources))
	for _, source := range sources {
		e, ok := k.entries[source]
		if !ok {
			known[source] = Material{Err: fmt.Errorf("the namespace names more than %d sources of trust material outside of the cluster", maxSources)}
			continue
		}
		known[source] = k.current(e)
	}
	return known
}

// current is what counts of an entry now.
func (k *Keeper) current(e *entry) Material {
	m := e.material
	switch {
	case m.Content == nil && m.Err == nil:
		m.Err = fmt.Errorf("%s has not answered yet", e.source)
	case m.Content != nil && m.Err != nil && k.now().Sub(m.FetchedAt) > k.options.Keep:
		m.Err = fmt.Errorf("what was fetched at %s is too old: %w", m.FetchedAt.UTC().Format(time.RFC3339), m.Err)
		m.Content = nil
	}
	return m
}

// Await waits until every wanted source has been tried, or ctx ends.
func (k *Keeper) Await(ctx context.Context) {
	k.mu.Lock()
	waiting := make([]*entry, 0, len(k.entries))
	for _, e := range k.entries {
		waiting = append(waiting, e)
	}
	k.mu.Unlock()
	for _, e := range waiting {
		select {
		case <-e.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Run fetches until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	var running sync.WaitGroup
	k.mu.Lock()
	k.begin = func(e *entry) {
		ctx, stop := context.WithCancel(ctx)
		e.stop = stop
		running.Go(func() { k.follow(ctx, e) })
	}
	for _, e := range k.entries {
		k.begin(e)
	}
	k.mu.Unlock()
	<-ctx.Done()
	k.mu.Lock()
	k.begin = nil
	k.mu.Unlock()
	running.Wait()
	return nil
}

// follow fetches one source again and again until ctx ends.
func (k *Keeper) follow(ctx context.Context, e *entry) {
	defer e.stop()
	failures := 0
	for {
		content, err := k.fetch(ctx, e.source)
		if ctx.Err() != nil {
			return
		}
		pause := k.options.Refresh - rand.N(k.options.Refresh/10+1) //nolint:gosec // jitter, no secret
		if err != nil {
			pause = min(firstRetry<<min(failures, 10), lastRetry)
			failures++
		} else {
			failures = 0
		}
		k.store(e, content, err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// store keeps what was fetched and tells whoever needs it, if it means something
// else than before, or once in a while, for the time in a status.
func (k *Keeper) store(e *entry, content []byte, err error) {
	k.mu.Lock()
	if err == nil {
		e.material = Material{Content: content, FetchedAt: k.now()}
	} else {
		e.material.Err = err
	}
	after := k.current(e)
	first := false
	select {
	case <-e.tried:
	default:
		first = true
		close(e.tried)
	}
	changed, before := k.changed, e.told
	news := first || string(before.Content) != string(after.Content) || (before.Err == nil) != (after.Err == nil) ||
		after.FetchedAt.Sub(before.FetchedAt) > tellEvery
	if news {
		e.told = after
	}
	k.mu.Unlock()
	if news {
		changed(e.source.Owner)
	}
}
