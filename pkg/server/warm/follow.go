package warm

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// ends remembers when exceptions for images end. Its zero value is empty.
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
	f := following{Watcher: w, known: map[string]string{}, left: map[string]string{}}
	for ticks := time.Tick(followEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		f.look(time.Now())
	}
}

// following is the state of follow, by namespace.
type following struct {
	*Watcher
	known map[string]string // generation
	// left has the namespaces with images that are not queued yet: those that follow the image.
	left map[string]string
}

// look queues the images with changes, as far as there is space. The next calls queue the
// rest.
func (f *following) look(now time.Time) {
	for _, t := range f.ends.past(now) {
		if !f.add(t, now) {
			f.ends.set(t, now) // which is over at the next call
		}
	}
	f.compare()
	if len(f.left) > 0 {
		f.askAgain(now)
	}
}

// add queues a target without counting it as dropped: it waits elsewhere.
func (f *following) add(t target, now time.Time) bool {
	return f.queue.add(f.verifier.Account(t.namespace), job{target: t, due: now})
}

// compare finds and updates the namespaces with pods whose generation has changed.
func (f *following) compare() {
	if f.generation == nil {
		return
	}
	exists := map[string]bool{}
	for _, namespace := range f.pods.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) {
		exists[namespace] = true
		if now := f.generation(verify.Namespace(namespace)); now != "" && now != f.known[namespace] {
			f.known[namespace], f.left[namespace] = now, ""
		}
	}
	maps.DeleteFunc(f.known, func(namespace, _ string) bool { return !exists[namespace] })
}

// askAgain queues images of running pods in the remaining namespaces, in their order, until
// an account has no more space. It does not verify images again whose verdict under the new
// rules is cached.
func (f *following) askAgain(now time.Time) {
	images := map[string][]string{}
	for _, key := range f.pods.GetIndexer().ListIndexFuncValues(byImage) {
		namespace, name, _ := strings.Cut(key, "/")
		if after, ok := f.left[namespace]; ok && name > after {
			images[namespace] = append(images[namespace], name)
		}
	}
	for namespace := range f.left {
		slices.Sort(images[namespace])
		full := slices.ContainsFunc(images[namespace], func(name string) bool {
			if !f.add(target{verify.Namespace(namespace), name}, now) {
				return true
			}
			f.left[namespace] = name
			return false
		})
		if !full {
			delete(f.left, namespace)
		}
	}
}
