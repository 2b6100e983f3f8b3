package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
)

func newCache() *cobra.Command {
	return group("cache", "Inspect and empty the cache that replicas share in Redis", newCacheStats(), newCacheShow(), newCachePurge())
}

// withRedis runs do with a connection until timeout.
func withRedis(cmd *cobra.Command, flags redisFlags, timeout time.Duration, do func(context.Context, redis.UniversalClient) error) error {
	connection, err := flags.connection()
	if err != nil {
		return err
	}
	client, err := cache.Connect(connection)
	if err != nil {
		return fmt.Errorf("--redis-url: %w", err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	return unavailable(errors.Join(do(ctx, client), client.Close()))
}

func newCacheStats() *cobra.Command {
	var flags redisFlags
	var output format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count the keys and bytes of each namespace in Redis",
		Long: `Stats scans all keys of Landwaiter in Redis and counts them, and the bytes of their
values, per namespace. "-" is cluster scope.

Exit codes: 0 the keys were counted, 64 the command line is wrong or a file that it
names cannot be read, 69 Redis failed.`,
		Example: `  landwaiter cache stats --redis-url rediss://redis.example:6379/0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRedis(cmd, flags, timeout, func(ctx context.Context, client redis.UniversalClient) error {
				found, err := cache.Usage(ctx, client)
				if err != nil {
					return err
				}
				usage := printableUsage(found)
				return output.print(cmd, usage)
			})
		},
	}
	flags.registerConnection(cmd)
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time for all of it")
	return cmd
}

// printedUsage is what cache stats prints.
type printedUsage struct {
	Namespaces []printedUse `json:"namespaces"`
	Keys       int          `json:"keys"`
	Bytes      int64        `json:"bytes"`
}

// printedUse is what one namespace has in Redis. Cluster scope is "-".
type printedUse struct {
	Namespace string `json:"namespace"`
	Keys      int    `json:"keys"`
	Bytes     int64  `json:"bytes"`
}

func printableUsage(found map[verify.Namespace]cache.Use) printedUsage {
	usage := printedUsage{Namespaces: []printedUse{}}
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		use := found[namespace]
		usage.Keys, usage.Bytes = usage.Keys+use.Keys, usage.Bytes+use.Bytes
		usage.Namespaces = append(usage.Namespaces, printedUse{Namespace: namespace.Label(), Keys: use.Keys, Bytes: use.Bytes})
	}
	return usage
}

func (u printedUsage) show(s *screen) {
	s.row("NAMESPACE", "KEYS", "BYTES")
	for _, use := range u.Namespaces {
		s.row(use.Namespace, use.Keys, use.Bytes)
	}
	s.row("(all)", u.Keys, u.Bytes)
}

// printedPurge is what cache purge prints.
type printedPurge struct {
	Namespace string `json:"namespace"`
	Keys      int    `json:"keys"`
}

func (p printedPurge) show(s *screen) { s.line("%d keys of %s removed", p.Keys, p.Namespace) }

func newCachePurge() *cobra.Command {
	var flags redisFlags
	var namespace string
	var clusterScope bool
	var output format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "purge (--namespace NS | --cluster-scope)",
		Short: "Remove the keys of a namespace from Redis",
		Long: `Purge removes every key of one namespace, or of cluster scope. Entries in the memory
of replicas stay until they expire. Images are verified again when they are asked for.

Exit codes: 0 the keys are removed, if there were any, 64 the command line is wrong
or a file that it names cannot be read, 69 Redis failed.`,
		Example: `  landwaiter cache purge --namespace team-a --redis-url rediss://redis.example:6379/0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ns, err := cacheScope(namespace, clusterScope, "say what to remove")
			if err != nil {
				return err
			}
			return withRedis(cmd, flags, timeout, func(ctx context.Context, client redis.UniversalClient) error {
				removed, err := cache.Purge(ctx, client, ns)
				return errors.Join(err, output.print(cmd, printedPurge{Namespace: ns.Label(), Keys: removed}))
			})
		},
	}
	flags.registerConnection(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace whose keys are removed")
	output.register(cmd)
	cmd.Flags().BoolVar(&clusterScope, "cluster-scope", false, "remove the keys of cluster scope")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time for all of it")
	return cmd
}
