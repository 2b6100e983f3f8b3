package cache

import (
	"context"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Chain is a [verify.Cache] that reads memory first and then Redis, whose entries it copies to
// memory. Tags stay in memory: they expire within seconds, and asking Redis costs as much as
// asking the registry.
type Chain struct {
	Memory *Memory
	// Evidence is the memory for evidence, which is larger than verdicts and must not evict them. If it is nil,
	// Memory holds both.
	Evidence *Memory
	Redis    *Redis // nil without Redis
}

var _ verify.Cache = Chain{}

// memory returns the memory for entries of a kind.
func (c Chain) memory(kind verify.Kind) *Memory {
	if kind == verify.KindEvidence && c.Evidence != nil {
		return c.Evidence
	}
	return c.Memory
}

// shared returns Redis if it stores entries of a kind, else nil.
func (c Chain) shared(kind verify.Kind) *Redis {
	if kind == verify.KindTag {
		return nil
	}
	return c.Redis
}

// Get returns the entry for key if memory or Redis has it and it has not expired.
func (c Chain) Get(ctx context.Context, key verify.Key) (verify.Entry, bool) {
	memory, redis := c.memory(key.Kind), c.shared(key.Kind)
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
func (c Chain) Recall(key verify.Key) (verify.Entry, bool) { return c.memory(key.Kind).Recall(key) }

// Put stores entry in memory and, asynchronously, in Redis.
func (c Chain) Put(ctx context.Context, key verify.Key, entry verify.Entry, ttl time.Duration) {
	c.memory(key.Kind).Put(ctx, key, entry, ttl)
	if redis := c.shared(key.Kind); redis != nil {
		redis.put(key, entry, ttl)
	}
}

// Forget drops all entries of a namespace.
func (c Chain) Forget(namespace verify.Namespace) {
	c.Memory.Forget(namespace)
	c.memory(verify.KindEvidence).Forget(namespace)
	if c.Redis != nil {
		c.Redis.Forget(namespace)
	}
}
