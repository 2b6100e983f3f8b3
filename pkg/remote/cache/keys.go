package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

const anyKey = "landwaiter:*"

// Use is the usage of Redis by a namespace.
type Use struct {
	Keys  int
	Bytes int64 // of values
}

// Usage returns the usage of each namespace in Redis. It scans all keys, and may miss keys
// that change meanwhile. It stops at the first error.
func Usage(ctx context.Context, client redis.UniversalClient) (map[verify.Namespace]Use, error) {
	var mu sync.Mutex
	found := map[verify.Namespace]Use{}
	err := scan(ctx, client, anyKey, func(ctx context.Context, node redis.Cmdable, names []string) error {
		sizes, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, name := range names {
				pipe.StrLen(ctx, name)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("measure values: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for i, name := range names {
			namespace, _ := readKey(name)
			use := found[namespace]
			use.Keys++
			use.Bytes += number(sizes[i])
			found[namespace] = use
		}
		return nil
	})
	return found, err
}

// Purge removes the keys of a namespace, or of cluster scope with [verify.Cluster], and
// returns how many it removed. It continues past keys that it cannot remove, such as those of
// a slot that is being moved, and returns the first such error at the end.
func Purge(ctx context.Context, client redis.UniversalClient, namespace verify.Namespace) (int, error) {
	return remove(ctx, client, namespace, func(_ context.Context, _ redis.Cmdable, names []string) ([]string, error) { return names, nil })
}

// purge removes the keys of a namespace whose values are sealed for one of its UIDs.
func purge(ctx context.Context, client redis.UniversalClient, of forgotten) error {
	_, err := remove(ctx, client, of.namespace, func(ctx context.Context, node redis.Cmdable, names []string) (own []string, err error) {
		heads, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, name := range names {
				pipe.GetRange(ctx, name, 0, headBytes-1)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the beginning of values: %w", err)
		}
		for i, head := range heads {
			text, _ := head.(*redis.StringCmd)
			if uid, err := sealedFor([]byte(text.Val())); err == nil && slices.Contains(of.uids, uid) {
				own = append(own, names[i])
			}
		}
		return own, nil
	})
	return err
}

// remove removes the keys of a namespace that choose selects.
func remove(ctx context.Context, client redis.UniversalClient, namespace verify.Namespace,
	choose func(ctx context.Context, node redis.Cmdable, names []string) ([]string, error)) (int, error) {
	var mu sync.Mutex
	removed := 0
	var refused error
	err := scan(ctx, client, keyPrefix(namespace)+"*", func(ctx context.Context, node redis.Cmdable, names []string) error {
		names, err := choose(ctx, node, names)
		if err != nil || len(names) == 0 {
			return err
		}
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
			removed += int(number(command))
		}
		if err != nil && refused == nil {
			refused = fmt.Errorf("remove keys: %w", err)
		}
		return ctx.Err()
	})
	return removed, errors.Join(refused, err)
}

// number returns the count that a command of a pipeline returned.
func number(command redis.Cmder) int64 {
	if counted, ok := command.(*redis.IntCmd); ok {
		return counted.Val()
	}
	return 0
}

// scan calls do with the keys that match a pattern, in batches: the keys of the server, or of
// every master of a cluster in parallel.
func scan(ctx context.Context, client redis.UniversalClient, pattern string,
	do func(ctx context.Context, node redis.Cmdable, names []string) error) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node, pattern, do) })
	}
	for cursor := uint64(0); ; {
		names, next, err := client.Scan(ctx, cursor, pattern, forgetBatch).Result()
		if err != nil {
			return fmt.Errorf("find keys %s: %w", pattern, err)
		}
		if len(names) > 0 {
			if err := do(ctx, client, names); err != nil {
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

// readKey returns the namespace and the kind of a key, for display only.
func readKey(name string) (verify.Namespace, string) {
	parts := append(strings.SplitN(name, ":", 4), "", "", "")
	if parts[1] == verify.Cluster.Label() {
		return verify.Cluster, parts[2]
	}
	return verify.Namespace(parts[1]), parts[2]
}
