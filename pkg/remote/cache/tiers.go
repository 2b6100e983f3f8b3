package cache

import (
	"context"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Tiers is a [verify.Cache] that looks in memory first and then in Redis, and copies what
// it finds there to memory. Tags stay in memory: they expire within seconds, and asking
// Redis costs as much as asking the registry.
type Tiers struct {
	Memory *Memory
	Redis  *Redis
}

var _ verify.Cache = Tiers{}

// Get returns the entry for key if either tier has it and it has not expired.
func (t Tiers) Get(ctx context.Context, key verify.Key) (verify.Entry, bool) {
	if entry, ok := t.Memory.Get(ctx, key); ok {
		return entry, true
	}
	if key.Kind != verify.KindVerdict {
		return verify.Entry{}, false
	}
	end := verify.StartStage(ctx, verify.StageRedis)
	entry, expires, ok := t.Redis.get(ctx, key)
	end()
	if ok {
		t.Memory.Put(ctx, key, entry, expires.Sub(t.Redis.now()))
	}
	return entry, ok
}

// Recall returns the entry for key if memory has it.
func (t Tiers) Recall(key verify.Key) (verify.Entry, bool) { return t.Memory.Recall(key) }

// Put stores entry in both tiers, in Redis asynchronously.
func (t Tiers) Put(ctx context.Context, key verify.Key, entry verify.Entry, ttl time.Duration) {
	t.Memory.Put(ctx, key, entry, ttl)
	if key.Kind == verify.KindVerdict {
		t.Redis.put(key, entry, ttl)
	}
}

// Forget drops all entries of a namespace.
func (t Tiers) Forget(namespace verify.Namespace) {
	t.Memory.Forget(namespace)
	t.Redis.Forget(namespace)
}
