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
	// Evidence is the memory for evidence, which is larger than verdicts and must not displace them. If it is nil,
	// Memory has both.
	Evidence *Memory
	Redis    *Redis // nil without Redis
}

var _ verify.Cache = Tiers{}

// memory returns where entries of a kind are.
func (t Tiers) memory(kind verify.Kind) *Memory {
	if kind == verify.KindEvidence && t.Evidence != nil {
		return t.Evidence
	}
	return t.Memory
}

// shared returns Redis if it keeps entries of a kind, else nil.
func (t Tiers) shared(kind verify.Kind) *Redis {
	if kind == verify.KindTag {
		return nil
	}
	return t.Redis
}

// Get returns the entry for key if either tier has it and it has not expired.
func (t Tiers) Get(ctx context.Context, key verify.Key) (verify.Entry, bool) {
	memory, redis := t.memory(key.Kind), t.shared(key.Kind)
	entry, ok := memory.Get(ctx, key)
	if ok || redis == nil {
		return entry, ok
	}
	end := verify.StartStage(ctx, verify.StageRedis)
	entry, expires, ok := redis.get(ctx, key)
	end()
	if ok {
		memory.Put(ctx, key, entry, expires.Sub(redis.now()))
	}
	return entry, ok
}

// Recall returns the entry for key if memory has it.
func (t Tiers) Recall(key verify.Key) (verify.Entry, bool) { return t.memory(key.Kind).Recall(key) }

// Put stores entry in both tiers, in Redis asynchronously.
func (t Tiers) Put(ctx context.Context, key verify.Key, entry verify.Entry, ttl time.Duration) {
	t.memory(key.Kind).Put(ctx, key, entry, ttl)
	if redis := t.shared(key.Kind); redis != nil {
		redis.put(key, entry, ttl)
	}
}

// Forget drops all entries of a namespace.
func (t Tiers) Forget(namespace verify.Namespace) {
	t.Memory.Forget(namespace)
	t.memory(verify.KindEvidence).Forget(namespace)
	if t.Redis != nil {
		t.Redis.Forget(namespace)
	}
}
