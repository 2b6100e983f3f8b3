package controller

import (
	"maps"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// pace shares the one compiler between namespaces: continuous edits, or new Secrets all the
// time, delay neither others nor their own namespace forever. The zero value is ready.
type pace struct {
	mu   sync.Mutex
	next map[verify.Namespace]time.Time // when a namespace may be compiled again
	// since is when a namespace began to wait for its references.
	since map[verify.Namespace]time.Time
}

// wait returns how long to wait before a namespace may be compiled.
func (p *pace) wait(namespace verify.Namespace, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.next[namespace].Sub(now))
}

// postpone returns how long a namespace may continue to wait for its references, given how
// long it wants to: 0 if it has waited [maxPostponed].
func (p *pace) postpone(namespace verify.Namespace, pending time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pending <= 0 {
		return 0
	}
	if p.since == nil {
		p.since = map[verify.Namespace]time.Time{}
	}
	began, waiting := p.since[namespace]
	if !waiting {
		began = now
		p.since[namespace] = now
	}
	return max(0, min(pending, began.Add(maxPostponed).Sub(now)))
}

// compiled records that a namespace was compiled between two times. The cluster has no
// pause: its resources are an admin's.
func (p *pace) compiled(namespace verify.Namespace, began, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, namespace)
	p.pause(namespace, max(minPause, pausePerCompile*now.Sub(began)), now)
}

// validated records that the resources of a namespace were validated, which took a while. It
// counts even if they are not compiled in the same round.
func (p *pace) validated(namespace verify.Namespace, took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause(namespace, pausePerCompile*took, now)
}

// pause lets a namespace wait. p.mu is held.
func (p *pace) pause(namespace verify.Namespace, wait time.Duration, now time.Time) {
	if namespace == verify.Cluster {
		return
	}
	if len(p.next) >= maxPaced {
		maps.DeleteFunc(p.next, func(_ verify.Namespace, until time.Time) bool { return until.Before(now) })
	}
	if p.next == nil {
		p.next = map[verify.Namespace]time.Time{}
	}
	p.next[namespace] = now.Add(wait)
}
