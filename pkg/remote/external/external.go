// Package external fetches trust material and registry credentials from outside of the
// cluster: HashiCorp Vault, key management services, TUF repositories, cloud registries. It
// fetches repeatedly in the background, and keeps the last good value for a time. It only
// fetches a tenant's sources with the tenant's own credentials, and only from hosts that a
// cluster admin lists.
//
// Everything that is fetched is a [Source] with an [Identity]. fetch.go decides whether it
// may be fetched, and each service has its own files: vault, tuf, github, and cloud_aws,
// cloud_azure and cloud_gcp with a build tag each. There are two exceptions:
// [Fetcher.AWSSigner] queries the status of signatures, and [FetchRevocationList] is for a
// command.
package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/pkg/remote/prefetch"
)

// Fetch gets the content of a source. It ends with ctx, and leaves nothing running.
type Fetch func(ctx context.Context, source Source) (Content, error)

// Content is the result of a fetch.
type Content struct {
	Bytes []byte
	// Ends is when Bytes expire by themselves; zero is never.
	Ends time.Time
	// Roles are the metadata of a TUF repository.
	Roles []TUFRole
}

// Options configure a [Fetcher]; zero values are the defaults.
type Options struct {
	// Hosts are the hosts that tenants' resources may name, as host or host:port.
	Hosts []string
	// Refresh is how often a source is fetched (5 minutes). Keep is how long the last good value
	// counts while fetching fails (24 hours).
	Refresh, Keep time.Duration
	// Account returns the account that pays for a namespace's fetches; nil means the namespace
	// itself.
	Account func(verify.Namespace) verify.Account
	// Proxy is used for the sources of the cluster and for Sigstore's own repository, whose
	// hosts a cluster admin or our code names. Tenants' sources are fetched directly.
	Proxy *egress.Environment
	// Tokens gets tokens of ServiceAccounts; nil means that there is no Kubernetes API.
	Tokens Tokens
	// Endpoints are the addresses that an admin configured for hosts.
	Endpoints egress.Endpoints
	// Wait makes [Fetcher.AWSSigner] wait for its first answer until the context ends. It
	// is for commands, which have no request path.
	Wait bool
	// UnsafePod lets resources of the cluster use the cloud identity of this process. It is for
	// servers: on a person's machine, the identity is the person's, and the resources are
	// others'.
	UnsafePod bool
	// Fetch replaces how sources are fetched, for tests.
	Fetch map[Kind]Fetch
}

// Fetcher fetches the sources that namespaces want and keeps their values. It is safe for
// concurrent use; only [Fetcher.Await] and [Fetcher.Run] block.
type Fetcher struct {
	options Options
	hosts   egress.Hosts
	now     func() time.Time
	set     *prefetch.Set[verify.Namespace, Source, Value]
	// signatures are the signatures to ask AWS Signer about.
	signatures *prefetch.Set[verify.Account, awsQuestion, awsAnswer]
}

// New returns a Fetcher that fetches while [Fetcher.Run] runs.
func New(options Options, now func() time.Time) *Fetcher {
	if options.Refresh <= 0 {
		options.Refresh = defaultRefresh
	}
	if options.Keep <= 0 {
		options.Keep = defaultKeep
	}
	if options.Account == nil {
		options.Account = verify.Namespace.Account
	}
	real := network{proxy: options.Proxy, tokens: options.Tokens, endpoints: options.Endpoints}
	if options.Fetch == nil {
		options.Fetch = real.fetchers()
	}
	hosts, err := egress.ParseHosts(options.Hosts)
	if err != nil {
		hosts = nil // a list that cannot be read allows nothing
	}
	f := &Fetcher{options: options, hosts: hosts, now: now}
	poll := prefetch.Poll(f.fetch, now, prefetch.PollOptions[queue, Source]{
		Refresh: f.refresh, FirstRetry: min(firstRetry, options.Refresh), LastRetry: min(lastRetry, options.Refresh),
		MaxFetches: maxFetches, MaxFetchesPerOwner: maxFetchesEach, Owner: f.queueOf,
		Apart: func(q queue) bool { return q.cluster || q.publicGood },
	})
	follow := func(ctx context.Context, source Source, report func(Value)) {
		poll(ctx, source, func(got prefetch.Fetched[Content]) {
			report(f.unexpired(Value{Content: got.Value.Bytes, FetchedAt: got.At, Ends: got.Value.Ends, Roles: got.Value.Roles, Err: got.Err}))
		})
	}
	f.set = prefetch.New[verify.Namespace](follow, now, prefetch.Options[Value]{MaxKeys: maxSources, FirstWait: firstWait, News: news})
	f.signatures = f.awsAnswers(func(ctx context.Context, q awsQuestion) ([]string, error) {
		if err := f.refused(q.as); err != nil {
			return nil, err
		}
		return real.of(Source{Owner: q.namespace}).askAWSSigner(ctx, q)
	})
	return f
}

// queue groups the fetches that wait for each other: those of an account. The cluster's
// fetches and the public-good root, which many namespaces share, never wait for an account's
// slow servers, nor for each other's.
type queue struct {
	account             verify.Account
	cluster, publicGood bool
}

func (f *Fetcher) queueOf(s Source) queue {
	switch {
	case s == publicGood():
		return queue{publicGood: true}
	case s.Owner == verify.Cluster:
		return queue{cluster: true}
	}
	return queue{account: f.options.Account(s.Owner)}
}

func (f *Fetcher) refresh(s Source) time.Duration {
	if s == publicGood() {
		return max(f.options.Refresh, publicGoodRefresh)
	}
	return f.options.Refresh
}

// Notify sets the function that is called, without a lock, when a value of a namespace has
// changed, has expired, or can no longer be fetched.
func (f *Fetcher) Notify(changed func(verify.Namespace)) { f.set.Notify(changed) }

// Want replaces the sources of a namespace. It returns how long to wait for those that have
// not been tried yet: 0 if all have, or if they have had their time.
func (f *Fetcher) Want(namespace verify.Namespace, sources []Source) time.Duration {
	keys := make([]Source, len(sources))
	for i, source := range sources {
		keys[i] = source.key()
	}
	return f.set.Want(namespace, keys)
}

// KeepOnly drops the sources of all namespaces but the given ones.
func (f *Fetcher) KeepOnly(needed map[verify.Namespace][]Source) { f.set.KeepOnly(needed) }

// Known returns the values of sources. A source that is not fetched because the namespace
// wants too many has an error that says so.
func (f *Fetcher) Known(sources []Source) map[Source]Value {
	known := make(map[Source]Value, len(sources))
	for _, source := range sources {
		value, err := f.set.Known(source.key())
		switch {
		case errors.Is(err, prefetch.ErrNotWanted):
			err = fmt.Errorf("the namespace names more than %d sources of trust material outside of the cluster", maxSources)
		case errors.Is(err, prefetch.ErrPending):
			err = source.unanswered(fmt.Errorf("%s has not answered yet", source), "")
		case err == nil:
			err = value.Err
		}
		value.Err = err
		known[source] = f.unexpired(value)
	}
	return known
}

// unexpired removes content that is too old or has expired, and returns when it will be too
// old. Content without an error is never too old: it is due for a fetch.
func (f *Fetcher) unexpired(v Value) Value {
	if v.KeptUntil = (time.Time{}); v.Content != nil && v.Err != nil {
		v.KeptUntil = v.FetchedAt.Add(f.options.Keep)
	}
	if v.Content != nil && !v.Ends.IsZero() && !f.now().Before(v.Ends) {
		v.Err = fmt.Errorf("the login that was fetched at %s has ended: %w", v.FetchedAt.UTC().Format(time.RFC3339),
			cmp.Or(v.Err, error(problem("it is being fetched again"))))
		v.Content = nil
	}
	if v.Content != nil && v.Err != nil && f.now().Sub(v.FetchedAt) > f.options.Keep {
		v.Err = fmt.Errorf("what was fetched at %s is too old: %w", v.FetchedAt.UTC().Format(time.RFC3339), v.Err)
		v.Content, v.Roles = nil, nil
	}
	return v
}

// news reports whether a namespace must be notified of a value. A status shows why a fetch
// failed, and once in a while the time of the fetch, so these are news too.
func news(told, value Value) bool {
	return string(told.Content) != string(value.Content) || !slices.Equal(told.Roles, value.Roles) ||
		fmt.Sprint(told.Err) != fmt.Sprint(value.Err) ||
		value.FetchedAt.Sub(told.FetchedAt) > tellEvery
}

// Await blocks until every wanted source has been tried, or ctx ends.
func (f *Fetcher) Await(ctx context.Context) { f.set.Await(ctx, f.set.Keys()...) }

// Run fetches until ctx ends. It returns nil.
func (f *Fetcher) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { f.signatures.Run(ctx) })
	f.set.Run(ctx)
	both.Wait()
	return nil
}
