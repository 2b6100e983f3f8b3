package verify

import (
	"errors"
	"fmt"
	"sync"
)

// errOverloaded is transient: a retry may find room.
var errOverloaded = errors.New("too many images are being verified, try again")

// errNoSpare says that what is left is kept for work that somebody waits for.
var errNoSpare = fmt.Errorf("no place is spare: %w", errOverloaded)

// limiter bounds the images that are worked on, in all and per namespace. A
// namespace may have no more of them than there are places left for others
// (dynamic thresholds, Choudhury and Hahne 1998): however many namespaces flood,
// one that comes anew finds a place. It never waits: work that would have to queue
// is better tried again by the caller, who has a deadline.
type limiter struct {
	mu            sync.Mutex
	total, each   int
	inFlight      int
	inFlightEvery map[Namespace]int
}

func newLimiter(total, each int) *limiter {
	return &limiter{total: total, each: each, inFlightEvery: map[Namespace]int{}}
}

// acquire takes a place for a namespace that may have so many; 0 is as many as
// every namespace.
func (l *limiter) acquire(namespace Namespace, each int) error {
	each = orDefault(each, l.each)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight >= l.total {
		return errOverloaded
	}
	if have := l.inFlightEvery[namespace]; have >= each || (have > 0 && have >= l.total-l.inFlight) {
		return fmt.Errorf("namespace %q: %w", namespace, errOverloaded)
	}
	l.take(namespace)
	return nil
}

// acquireSpare is acquire for work that nobody waits for: it takes a place only
// while less than half of all are taken, and less than half of the namespace's own.
func (l *limiter) acquireSpare(namespace Namespace, each int) error {
	each = orDefault(each, l.each)
	l.mu.Lock()
	defer l.mu.Unlock()
	if 2*l.inFlight >= l.total || 2*l.inFlightEvery[namespace] >= each {
		return fmt.Errorf("namespace %q: %w", namespace, errNoSpare)
	}
	l.take(namespace)
	return nil
}

func (l *limiter) take(namespace Namespace) {
	l.inFlight++
	l.inFlightEvery[namespace]++
}

func (l *limiter) release(namespace Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	if l.inFlightEvery[namespace]--; l.inFlightEvery[namespace] == 0 {
		delete(l.inFlightEvery, namespace)
	}
}
