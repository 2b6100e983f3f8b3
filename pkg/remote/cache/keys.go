package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

const anyKey = "landwaiter:*"

// Use is how much a namespace has in Redis.
type Use struct {
	Keys  int
	Bytes int64 // of values
}

// Usage returns how much each namespace has in Redis. It scans all keys, and may miss those
// that change meanwhile. It stops at the first error.
func Usage(ctx context.Context, client redis.UniversalClient) (map[verify.Namespace]Use, error) {
	var mu sync.Mutex
	found := map[verify.Namespace]Use{}
	err := eachNode(ctx, client, func(ctx context.Context, node redis.Cmdable) error {
		return scan(ctx, node, anyKey, func(names []string) error {
			sizes := make([]*redis.IntCmd, len(names))
			if _, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for i, name := range names {
					sizes[i] = pipe.StrLen(ctx, name)
				}
				return nil
			}); err != nil {
				return fmt.Errorf("measure values: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, name := range names {
				namespace := namespaceOf(name)
				use := found[namespace]
				use.Keys++
				use.Bytes += sizes[i].Val()
				found[namespace] = use
			}
			return nil
		})
	})
	return found, err
}

// Purge removes the keys of a namespace, or of cluster scope with [verify.Cluster], and
// returns how many it removed. It continues past keys that it cannot remove, such as those
// of a slot that is being moved, and returns the first such error in the end.
func Purge(ctx context.Context, client redis.UniversalClient, namespace verify.Namespace) (int, error) {
	var mu sync.Mutex
	removed := 0
	var refused error
	err := eachNode(ctx, client, func(ctx context.Context, node redis.Cmdable) error {
		return scan(ctx, node, keyPrefix(namespace)+"*", func(names []string) error {
			// One command per key: in a Redis Cluster, a namespace's keys are in many slots.
			gone, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, name := range names {
					pipe.Unlink(ctx, name)
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			for _, command := range gone {
				if n, ok := command.(*redis.IntCmd); ok {
					removed += int(n.Val())
				}
			}
			if err != nil && refused == nil {
				refused = fmt.Errorf("remove keys: %w", err)
			}
			return ctx.Err()
		})
	})
	return removed, errors.Join(refused, err)
}

// eachNode calls do for the server, or for every master of a cluster in parallel.
func eachNode(ctx context.Context, client redis.UniversalClient, do func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	}
	return do(ctx, client)
}

// scan calls do with the keys that match a pattern, in batches.
func scan(ctx context.Context, node redis.Cmdable, pattern string, do func([]string) error) error {
	var cursor uint64
	for {
		names, next, err := node.Scan(ctx, cursor, pattern, forgetBatch).Result()
		if err != nil {
			return fmt.Errorf("find keys %s: %w", pattern, err)
		}
		if len(names) > 0 {
			if err := do(names); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// keyPrefix returns the prefix of a namespace's keys, as in [verify.Key.String].
func keyPrefix(namespace verify.Namespace) string { return "landwaiter:" + namespace.Label() + ":" }

// namespaceOf returns the namespace of a key, for display only.
func namespaceOf(name string) verify.Namespace {
	parts := strings.SplitN(name, ":", 3)
	if len(parts) < 2 || parts[1] == verify.Cluster.Label() {
		return verify.Cluster
	}
	return verify.Namespace(parts[1])
}
