package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
)

func newCache(by person) *cobra.Command {
	return group("cache", "Inspect and empty the cache that replicas share in Redis", newCacheStats(), newCacheShow(by), newCachePurge(by))
}

// withRedis runs do with a connection until timeout.
func withRedis(cmd *cobra.Command, flags program.Redis, timeout time.Duration, do func(context.Context, redis.UniversalClient) error) error {
	connection, err := flags.Connection()
	if err != nil {
		return err
	}
	client, err := cache.Connect(connection)
	if err != nil {
		return fmt.Errorf("--redis-url: %w", err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	return program.Failed(errors.Join(do(ctx, client), client.Close()))
}

func newCacheStats() *cobra.Command {
	var flags program.Redis
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
				return output.print(cmd, printableUsage(found))
			})
		},
	}
	flags.RegisterConnection(cmd)
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

func newCachePurge(by person) *cobra.Command {
	var flags program.Redis
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
			ns, err := cacheScope(*by.Namespace, clusterScope, "say what to remove")
			if err != nil {
				return err
			}
			return withRedis(cmd, flags, timeout, func(ctx context.Context, client redis.UniversalClient) error {
				removed, err := cache.Purge(ctx, client, ns)
				return errors.Join(err, output.print(cmd, printedPurge{Namespace: ns.Label(), Keys: removed}))
			})
		},
	}
	flags.RegisterConnection(cmd)
	output.register(cmd)
	cmd.Flags().BoolVar(&clusterScope, "cluster-scope", false, "remove the keys of cluster scope")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time for all of it")
	return cmd
}

// defaultShown and maxShown bound what cache show lists.
const (
	defaultShown = 500
	maxShown     = 100_000
)

// showFlags are the flags of cache show.
type showFlags struct {
	redis        program.Redis
	by           person
	clusterScope bool
	image        string
	limit        int
	timeout      time.Duration
}

func newCacheShow(by person) *cobra.Command {
	flags := showFlags{by: by}
	var output format
	cmd := &cobra.Command{
		Use:   "show (--namespace NS | --cluster-scope) [--image REPOSITORY[@DIGEST]]",
		Short: "List the verdicts of a namespace in Redis",
		Long: `Show opens the cached verdicts of one namespace, or of cluster scope, with the keys
that seal them, and lists them. It is for cluster admins: whoever has the key file can
also make verdicts. Teams ask the Kubernetes API and "landwaiter verify --explain" instead.

A value that does not open is listed as UNOPENED with the reason: a key that is no longer
in the file, or somebody else wrote it. It is never used as a verdict.

Exit codes: 0 the verdicts are listed, if there are any, 64 the command line is wrong or
a file that it names cannot be read, 69 Redis failed.`,
		Example: `  landwaiter cache show --namespace team-a --redis-url-file redis-url --redis-key-file redis-key
  landwaiter cache show -n team-a --image registry.example.com/team-a/app --redis-url-file redis-url --redis-key-file redis-key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, &output) },
	}
	flags.redis.Register(cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.clusterScope, "cluster-scope", false, "list the verdicts of cluster scope")
	f.StringVar(&flags.image, "image", "", "list those of one repository, or of one digest of it (empty: all)")
	f.IntVar(&flags.limit, "limit", defaultShown, "list at most so many; the others are counted")
	f.DurationVar(&flags.timeout, "timeout", time.Minute, "time for all of it")
	output.register(cmd)
	return cmd
}

func (s *showFlags) run(cmd *cobra.Command, output *format) error {
	namespace, err := cacheScope(*s.by.Namespace, s.clusterScope, "say what to list")
	if err != nil {
		return err
	}
	of, err := s.repository()
	if err != nil {
		return err
	}
	if s.limit < 1 || s.limit > maxShown {
		return fmt.Errorf("--limit is %d, it must be 1 to %d", s.limit, maxShown)
	}
	if s.redis.KeyFile == "" {
		return errors.New("the verdicts are sealed: use --redis-key-file with the keys that landwaiter-server serve has")
	}
	keys, err := program.ReadSetting("--redis-key-file", s.redis.KeyFile)
	if err != nil {
		return err
	}
	seal, err := cache.ParseSeal(keys)
	if err != nil {
		return fmt.Errorf("--redis-key-file: %w", err)
	}
	return withRedis(cmd, s.redis, s.timeout, func(ctx context.Context, client redis.UniversalClient) error {
		found, err := cache.Show(ctx, client, seal, namespace, of, s.limit)
		if err != nil {
			return err
		}
		return output.print(cmd, printableListing(namespace, found, time.Now()))
	})
}

// repository returns the image that --image asks for, nil without one.
func (s *showFlags) repository() (*image.Reference, error) {
	if s.image == "" {
		return nil, nil //nolint:nilnil // the flag is optional
	}
	ref, err := image.Parse(s.image)
	if err != nil {
		return nil, fmt.Errorf("--image: %w", err)
	}
	name, _, _ := strings.Cut(s.image, "@")
	if name = name[strings.LastIndex(name, "/")+1:]; strings.Contains(name, ":") {
		return nil, fmt.Errorf("--image is %s, but verdicts are about digests: leave the tag out, or ask for the digest that landwaiter verify --digest prints", s.image)
	}
	return &ref, nil
}

// cacheScope returns the namespace that two flags mean; exactly one of them must be given.
func cacheScope(namespace string, clusterScope bool, ask string) (verify.Namespace, error) {
	if (namespace == "") == !clusterScope {
		return "", errors.New(ask + ": --namespace NS or --cluster-scope")
	}
	return parseNamespaceFlag(namespace)
}

// printedListing is what cache show prints.
type printedListing struct {
	Namespace string         `json:"namespace"`
	Entries   []printedEntry `json:"entries"`
	Keys      int            `json:"keys"`
	Unopened  int            `json:"unopened"`
	LeftOff   int            `json:"leftOff"`
}

// printedEntry is one cached verdict, or a value that did not open: then it only has kind,
// verdict and reason.
type printedEntry struct {
	Kind         string `json:"kind"`
	Image        string `json:"image,omitempty"`
	Verdict      string `json:"verdict"`
	Policy       string `json:"policy,omitempty"`
	Reason       string `json:"reason"`
	Warning      string `json:"warning,omitempty"`
	Expired      bool   `json:"expired,omitempty"`
	Written      string `json:"written,omitempty"`
	Expires      string `json:"expires,omitempty"`
	NamespaceUID string `json:"namespaceUID,omitempty"`
	Generation   string `json:"configHash,omitempty"`
	Version      string `json:"version,omitempty"`

	age, left time.Duration
}

// unopened is the verdict that stands for a value that did not open.
const unopened = "unopened"

func printableListing(namespace verify.Namespace, found cache.Listing, now time.Time) printedListing {
	listing := printedListing{Namespace: namespace.Label(), Entries: []printedEntry{}, Keys: found.Keys, Unopened: found.Unopened, LeftOff: found.LeftOff}
	for _, e := range found.Entries {
		if e.Unopened != nil {
			listing.Entries = append(listing.Entries, printedEntry{Kind: e.Kind, Verdict: unopened, Reason: e.Unopened.Error()})
			continue
		}
		entry := printedEntry{Kind: e.Kind, Image: e.Image, Verdict: e.Verdict.Outcome().String(), Reason: e.Verdict.Reason, Warning: e.Verdict.Warning,
			Expired: !now.Before(e.Expires), Written: e.Written.UTC().Format(time.RFC3339), Expires: e.Expires.UTC().Format(time.RFC3339),
			NamespaceUID: e.UID, Generation: e.Generation, Version: e.Program, age: now.Sub(e.Written), left: e.Expires.Sub(now)}
		if e.Verdict.Policy.Name != "" {
			entry.Policy = e.Verdict.Policy.String()
		}
		listing.Entries = append(listing.Entries, entry)
	}
	return listing
}

// shortGeneration is how much of a generation a table has.
const shortGeneration = 8

func (l printedListing) show(s *screen) {
	s.row("VERDICT", "AGE", "EXPIRES", "CONFIG", "IMAGE, POLICY AND REASON")
	for _, e := range l.Entries {
		if e.Verdict == unopened {
			s.row(strings.ToUpper(unopened), "-", "-", "-", e.Reason)
			continue
		}
		left := "expired"
		if !e.Expired {
			left = e.left.Round(time.Second).String()
		}
		about := e.Image
		if e.Policy != "" {
			about += " by " + e.Policy
		}
		s.row(strings.ToUpper(e.Verdict), e.age.Round(time.Second), left, fmt.Sprintf("%.*s", shortGeneration, e.Generation), about+": "+e.Reason)
	}
	s.line("%d keys of %s, %d did not open, %d left out by --limit", l.Keys, l.Namespace, l.Unopened, l.LeftOff)
}
