package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func newCache() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Inspect and empty the cache that replicas share in Redis",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheStats(), newCachePurge())
	return cmd
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
	var output string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count the keys and bytes of each namespace in Redis",
		Long: `Stats scans all keys of Landwaiter in Redis and counts them, and the bytes of their
values, per namespace. "-" is cluster scope.`,
		Example: `  landwaiter cache stats --redis-url rediss://redis.example:6379/0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return withRedis(cmd, flags, timeout, func(ctx context.Context, client redis.UniversalClient) error {
				found, err := cache.Usage(ctx, client)
				if err != nil {
					return err
				}
				return printUsage(cmd.OutOrStdout(), output, found)
			})
		},
	}
	flags.registerConnection(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time for all of it")
	return cmd
}

func printUsage(out io.Writer, format string, found map[verify.Namespace]cache.Use) error {
	if format == "json" {
		named := make(map[string]cache.Use, len(found))
		for namespace, use := range found {
			named[namespace.Label()] = use
		}
		return printJSON(out, named)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tKEYS\tBYTES")
	var all cache.Use
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		use := found[namespace]
		all.Keys, all.Bytes = all.Keys+use.Keys, all.Bytes+use.Bytes
		fmt.Fprintf(table, "%s\t%d\t%d\n", namespace.Label(), use.Keys, use.Bytes)
	}
	fmt.Fprintf(table, "(all)\t%d\t%d\n", all.Keys, all.Bytes)
	return table.Flush()
}

func newCachePurge() *cobra.Command {
	var flags redisFlags
	var namespace string
	var clusterScope bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "purge (--namespace NS | --cluster-scope)",
		Short: "Remove the keys of a namespace from Redis",
		Long: `Purge removes every key of one namespace, or of cluster scope. Entries in the memory
of replicas stay until they expire. Images are verified again when they are asked for.`,
		Example: `  landwaiter cache purge --namespace team-a --redis-url rediss://redis.example:6379/0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (namespace == "") == !clusterScope {
				return errors.New("say what to remove: --namespace NS or --cluster-scope")
			}
			ns, err := parseNamespaceFlag(namespace)
			if err != nil {
				return err
			}
			return withRedis(cmd, flags, timeout, func(ctx context.Context, client redis.UniversalClient) error {
				removed, err := cache.Purge(ctx, client, ns)
				fmt.Fprintf(cmd.OutOrStdout(), "%d keys of %s removed\n", removed, ns.Label())
				return err
			})
		},
	}
	flags.registerConnection(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace whose keys are removed")
	cmd.Flags().BoolVar(&clusterScope, "cluster-scope", false, "remove the keys of cluster scope")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time for all of it")
	return cmd
}
