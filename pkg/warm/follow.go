package warm

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// ends remembers until when exceptions allow images. Its zero value is empty.
type ends struct {
	mu sync.Mutex
	at map[target]time.Time
}

// set remembers an end, or forgets the target if there is none.
func (e *ends) set(t target, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case at.IsZero():
		delete(e.at, t)
	case len(e.at) < maxEnds:
		if e.at == nil {
			e.at = map[target]time.Time{}
		}
		e.at[t] = at
	}
}

// past forgets and returns the targets whose exception has ended.
func (e *ends) past(now time.Time) []target {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []target
	for t, at := range e.at {
		if now.After(at) {
			found = append(found, t)
			delete(e.at, t)
		}
	}
	return found
}

// follow queues the images of running pods whose rules have changed, or whose exception has
// ended, until ctx ends.
func (w *Watcher) follow(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	known := map[string]string{} // generations by namespace
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, t := range w.ends.past(time.Now()) {
			w.ask(job{target: t, due: time.Now()})
		}
		if changed := w.outdated(known); len(changed) > 0 {
			w.askAgain(changed)
		}
	}
}

// outdated returns the namespaces with pods whose generation is not the known one, and
// makes it known.
func (w *Watcher) outdated(known map[string]string) map[string]bool {
	if w.generation == nil {
		return nil
	}
	changed, exists := map[string]bool{}, map[string]bool{}
	for _, namespace := range w.pods.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) {
		exists[namespace] = true
		if now := w.generation(verify.Namespace(namespace)); now != "" && now != known[namespace] {
			known[namespace], changed[namespace] = now, true
		}
	}
	for namespace := range known {
		if !exists[namespace] {
			delete(known, namespace)
		}
	}
	return changed
}

// askAgain queues the images of the running pods of some namespaces. What the cache knows
// by their rules is not verified again.
func (w *Watcher) askAgain(namespaces map[string]bool) {
	for _, key := range w.pods.GetIndexer().ListIndexFuncValues(byImage) {
		if namespace, name, _ := strings.Cut(key, "/"); namespaces[namespace] {
			w.ask(job{target: target{verify.Namespace(namespace), name}, due: time.Now()})
		}
	}
}
