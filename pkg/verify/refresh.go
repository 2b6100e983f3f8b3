package verify

import (
	"context"

	"github.com/landwaiter/landwaiter/pkg/image"
)

// manner is how an answer may be come by. The zero value is that of an admission.
type manner struct {
	fresh bool // what is cached is no answer
	spare bool // only in a place that nobody is likely to miss
}

func (m manner) acquire(l *limiter, namespace Namespace, places int) error {
	if m.spare {
		return l.acquireSpare(namespace, places)
	}
	return l.acquire(namespace, places)
}

// known is what the cache has for key, unless it is to be found out anew.
func (e *Engine) known(ctx context.Context, key Key, how manner) (Entry, bool) {
	if how.fresh {
		return Entry{}, false
	}
	return e.cache.Get(ctx, key)
}

// Warm is Verify at low priority, for images that nobody has asked for yet: work
// is begun only while less than half of all places are taken, and less than half of
// the namespace's own. Else the result is Undecided and Overloaded at once.
func (e *Engine) Warm(ctx context.Context, config *Config, ref image.Reference) Result {
	return e.verify(ctx, config, ref, manner{spare: true})
}

// Refresh is Warm that finds out anew what is cached, tag and verdict, so that it is
// kept for its whole time again. Its result takes the place of what is cached, as
// Verify's would; one that is Undecided leaves it.
func (e *Engine) Refresh(ctx context.Context, config *Config, ref image.Reference) Result {
	return e.verify(ctx, config, ref, manner{fresh: true, spare: true})
}
