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

// cacheFlags are the common flags of the cache commands.
type cacheFlags struct {
	by           person
	redis        program.Redis
	clusterScope bool
}

func newCache(by person) *cobra.Command {
	flags := &cacheFlags{by: by}
	cmd := group("cache", "Inspect and purge the cache that replicas share in Redis", newCacheShow(flags), newCachePurge(flags))
	f := cmd.PersistentFlags()
	flags.redis.RegisterConnection(f)
	f.BoolVar(&flags.clusterScope, "cluster-scope", false, "use the keys of cluster scope instead of the keys of a namespace")
	for _, sub := range cmd.Commands() {
		uses(sub, time.Minute, flagOutput)
	}
	return cmd
}

// connected runs do with a connection until --timeout.
func (c *cacheFlags) connected(cmd *cobra.Command, do func(context.Context, redis.UniversalClient) error) error {
	connection, err := c.redis.Connection()
	if err != nil {
		return err
	}
	client, err := cache.Connect(connection)
	if err != nil {
		return fmt.Errorf("--redis-url: %w", err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), c.by.within(cmd))
	defer cancel()
	return program.Failed(errors.Join(do(ctx, client), client.Close()))
}

// printedUsage is the output of cache show for all namespaces.
type printedUsage struct {
	Namespaces []printedUse `json:"namespaces"`
	Keys       int          `json:"keys"`
	Bytes      int64        `json:"bytes"`
}

// printedUse is the usage of one namespace in Redis. Cluster scope is "-".
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

// printedPurge is the output of cache purge.
type printedPurge struct {
	Namespace string `json:"namespace"`
	Keys      int    `json:"keys"`
}

func (p printedPurge) show(s *screen) { s.line("%d keys of %s removed", p.Keys, p.Namespace) }

func newCachePurge(flags *cacheFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "purge (--namespace NS | --cluster-scope)",
		Short: "Remove the keys of a namespace from Redis",
		Long: `Purge removes every key of one namespace, or of cluster scope. Entries in the memory of replicas
stay until they expire. The server verifies each image again at the next request. The exit code is
0 even if there were no keys.`,
		Example: `  landwaiter cache purge --namespace team-a --redis-url rediss://redis.example:6379/0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ns, err := flags.scope("what to remove is missing")
			if err != nil {
				return err
			}
			return flags.connected(cmd, func(ctx context.Context, client redis.UniversalClient) error {
				removed, err := cache.Purge(ctx, client, ns)
				if err != nil && removed == 0 {
					return err
				}
				return errors.Join(err, flags.by.output.print(cmd, printedPurge{Namespace: ns.Label(), Keys: removed}))
			})
		},
	}
}

// defaultShown and maxShown bound the list of cache show.
const (
	defaultShown = 500
	maxShown     = 100_000
)

// showFlags are the flags of cache show.
type showFlags struct {
	*cacheFlags

	image   string
	keyFile string
	limit   int
}

func newCacheShow(shared *cacheFlags) *cobra.Command {
	flags := showFlags{cacheFlags: shared}
	cmd := &cobra.Command{
		Use:   "show [--namespace NS | --cluster-scope] [--image REPOSITORY[@DIGEST]]",
		Short: "Count the keys of each namespace in Redis, or list the verdicts of one namespace",
		Long: `Show counts the keys of each namespace in Redis, and the bytes of their values. "-" means cluster
scope. With --namespace or --cluster-scope, show opens the cached verdicts with the keys of
--redis-key-file, and lists them. This is only for cluster admins, because anyone with the key
file can forge verdicts. Teams can use "landwaiter verify --explain" instead.

A value that cannot be opened is listed as UNOPENED with the reason: the file no longer contains
the key, or someone else wrote the value. The server never uses such a value as a verdict. The
exit code is 0 even if there is nothing to show.`,
		Example: `  landwaiter cache show --redis-url rediss://redis.example:6379/0
  landwaiter cache show --namespace team-a --redis-url-file redis-url --redis-key-file redis-key
  landwaiter cache show -n team-a --image registry.example.com/team-a/app --redis-url-file redis-url --redis-key-file redis-key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *flags.by.Namespace == "" && !flags.clusterScope {
				return flags.count(cmd)
			}
			return flags.list(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.keyFile, "redis-key-file", "", program.KeyFileUsage)
	f.StringVar(&flags.image, "image", "", "list only the verdicts of one repository, or of one digest in it (empty: all)")
	f.IntVar(&flags.limit, "limit", defaultShown, "maximum number of verdicts to list; further verdicts are only counted")
	return cmd
}

// count prints the usage of each namespace.
func (s *showFlags) count(cmd *cobra.Command) error {
	if s.image != "" {
		return errors.New("--image requires --namespace NS or --cluster-scope")
	}
	return s.connected(cmd, func(ctx context.Context, client redis.UniversalClient) error {
		found, err := cache.Usage(ctx, client)
		if err != nil {
			return err
		}
		return s.by.output.print(cmd, printableUsage(found))
	})
}

// list lists the verdicts of one namespace.
func (s *showFlags) list(cmd *cobra.Command) error {
	namespace, err := s.scope("what to list is missing")
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
	if s.keyFile == "" {
		return errors.New("the verdicts are sealed: use --redis-key-file with the key file of landwaiter-server serve")
	}
	keys, err := program.ReadSetting("--redis-key-file", s.keyFile)
	if err != nil {
		return err
	}
	seal, err := cache.ParseSeal(keys)
	if err != nil {
		return fmt.Errorf("--redis-key-file: %w", err)
	}
	return s.connected(cmd, func(ctx context.Context, client redis.UniversalClient) error {
		found, err := cache.Show(ctx, client, seal, namespace, of, s.limit)
		if err != nil {
			return err
		}
		return s.by.output.print(cmd, printableListing(namespace, found, time.Now()))
	})
}

// repository returns the repository or digest of --image in the form that [cache.Show] takes.
func (s *showFlags) repository() (string, error) {
	if s.image == "" {
		return "", nil
	}
	ref, err := image.Parse(s.image)
	if err != nil {
		return "", fmt.Errorf("--image: %w", err)
	}
	name, _, _ := strings.Cut(s.image, "@")
	if name = name[strings.LastIndex(name, "/")+1:]; strings.Contains(name, ":") {
		return "",
			fmt.Errorf("--image is %s, but verdicts are about digests: omit the tag, or use the digest that landwaiter verify --digest prints",
				s.image)
	}
	if ref.Digest == "" {
		return ref.Name(), nil
	}
	return ref.Name() + "@" + ref.Digest.String(), nil
}

// scope returns the namespace that two flags select; exactly one of them must be given.
func (c *cacheFlags) scope(ask string) (verify.Namespace, error) {
	if (*c.by.Namespace == "") == !c.clusterScope {
		return "", errors.New(ask + ": --namespace NS or --cluster-scope")
	}
	return parseNamespaceFlag(*c.by.Namespace)
}

// printedListing is the output of cache show for one namespace.
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

// maxShownReason bounds the reason of a denial, in bytes.
const maxShownReason = 2048

// unopened replaces the verdict of a value that did not open.
const unopened = "unopened"

func printableListing(namespace verify.Namespace, found cache.Listing, now time.Time) printedListing {
	listing := printedListing{Namespace: namespace.Label(), Entries: []printedEntry{}, Keys: found.Keys, Unopened: found.Unopened,
		LeftOff: found.LeftOff}
	for _, e := range found.Entries {
		if e.Unopened != nil {
			listing.Entries = append(listing.Entries, printedEntry{Kind: e.Kind, Verdict: unopened, Reason: e.Unopened.Error()})
			continue
		}
		entry := printedEntry{Kind: e.Kind, Image: e.Image, Verdict: e.Verdict.Outcome().String(), Reason: e.Verdict.Reasons(maxShownReason),
			Warning: e.Verdict.Warning,
			Expired: !now.Before(e.Expires), Written: e.Written.UTC().Format(time.RFC3339), Expires: e.Expires.UTC().Format(time.RFC3339),
			NamespaceUID: e.UID, Generation: e.Generation, Version: e.Program, age: now.Sub(e.Written), left: e.Expires.Sub(now)}
		if e.Verdict.Policy.Name != "" {
			entry.Policy = e.Verdict.Policy.String()
		}
		listing.Entries = append(listing.Entries, entry)
	}
	return listing
}

// shortGeneration is the length of a generation in a table.
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
