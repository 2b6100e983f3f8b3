// Package registry reads from OCI registries, over oras-go; no other package does. It
// resolves tags, lists referrers and fetches content, with one tenant's credentials at a
// time, and verifies every byte against the requested digest. It only sends credentials to
// the hosts that they were declared for. It only uses plain HTTP or private addresses if a
// cluster admin listed the host. It never reads more than a limit. Through a proxy it only
// reaches hosts that a cluster admin listed.
package registry

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// Options configure a [Client]. The zero value is safe; a zero or negative value means
// the default.
type Options struct {
	// DialTimeout bounds connecting and the TLS handshake. Default 2 s.
	DialTimeout time.Duration
	// RequestTimeout bounds one request including redirects and body, in addition to
	// the caller's deadline. Default 5 s.
	RequestTimeout time.Duration
	// PerHost bounds the requests in flight to one host; further ones queue. Default 64.
	PerHost int
	// PerSecond is the number of registry requests of an account per second, with bursts of
	// twice as many; further ones wait. Default 500, enough for about 100 images.
	PerSecond int
	// BytesPerSecond is the number of bytes of answers that an account may read per second, with
	// bursts of half as many; further reads wait. Default 32 MiB. Evidence takes about 10 KiB
	// per image.
	BytesPerSecond int
	// DeniedPrefixes are refused in addition to loopback, link-local, private and other
	// special-purpose addresses, such as the addresses of the cluster's pods and services.
	DeniedPrefixes []netip.Prefix
	// Proxy is the proxy of the environment, for hosts that a ClusterStore lists. Nil means
	// none.
	Proxy *egress.Environment
	// Endpoints are the addresses that an admin configured for registries.
	Endpoints egress.Endpoints
	// UserAgent is sent with every request.
	UserAgent string
	// Observe, if set, is called for every request once its header has arrived or it has failed.
	// It must not block, and is called from several goroutines.
	Observe func(Exchange)
}

// Credential authenticates to a registry. The zero value is anonymous.
type Credential struct {
	Username string
	Password string
	// IdentityToken is an OAuth 2.0 refresh token, RegistryToken a bearer token.
	IdentityToken string
	RegistryToken string
}

// Store is the compiled form of a Store or ClusterStore.
type Store struct {
	Source     policy.ObjectRef
	Registries []string // normalised hosts
	RootCAs    []byte   // PEM, trusted in addition to the system's certificates
	// Patterns list more registries. Level orders stores: the lowest level with a store for a
	// host decides, and within it a name comes before a pattern.
	Patterns []image.HostPattern
	Level    int
	Logins   Logins
	// ClientCertificate is presented to hosts that the store lists.
	ClientCertificate *tls.Certificate
	// Mirrors are read instead of Registries, the first one that has the image.
	Mirrors []Mirror
	// Evidence lists repositories that are searched for signatures and attestations in addition
	// or, if EvidenceExclusive is set, instead of all others.
	Evidence          []Location
	EvidenceExclusive bool
	// Broken, if set, says why the store is unusable, as [Unusable] does: it is the error of every
	// call for its registries. Without registries it applies to all hosts.
	Broken error
}

// HostRule is what a cluster admin allows for a host.
type HostRule struct {
	PlainHTTP bool // use HTTP without TLS
	Private   bool // may have a loopback, link-local, private or cluster address
	// Proxy replaces or extends the proxy of the environment, which applies if it is nil.
	Proxy *Proxy
}

// Access defines what one tenant may reach, and how. It is immutable.
type Access struct {
	Namespace verify.Namespace
	// Account pays for the requests; empty means the namespace's own account.
	Account verify.Account
	UID     string
	Stores  []Store             // the nearest level first, and within it by name
	Hosts   map[string]HostRule // by normalised host
	// Patterns are rules for hosts that are not in Hosts; the first that matches counts.
	Patterns []PatternRule
	// Attestations also reads cosign's attestation tag when referrers are listed. It costs one
	// more request, so set it only if a Verifier checks attestations.
	Attestations bool
	// Generation is a hash of Stores with their credentials, Hosts and Patterns; "" keeps no evidence.
	Generation string
	// PerSecond replaces [Options.PerSecond] for the account, if it is not 0.
	PerSecond int
}

// account returns the account that pays, which is never empty.
func (a Access) account() verify.Account { return cmp.Or(a.Account, a.Namespace.Account()) }

// recent is a cache of bounded size, of otter. Every package that sees a type of otter compiles all
// of its methods again, for a second or more, so no field has such a type.
type recent[K comparable, V any] interface {
	GetIfPresent(key K) (V, bool)
	Set(key K, value V) (V, bool)
	SetIfAbsent(key K, value V) (V, bool)
	ComputeIfAbsent(key K, compute func() (value V, cancel bool)) (V, bool)
	Invalidate(key K) (V, bool)
	Keys() iter.Seq[K]
	Values() iter.Seq[V]
}

// Client holds the state that tenants share: connections, and turns at hosts. State that one
// tenant's requests create is not used for another's: tokens, pauses, rates and which
// repositories have the referrers API are separate. At hosts that a cluster admin named, pauses
// are shared within limits (see [shared]), and so is the presence of the API. It is safe for
// concurrent use.
type Client struct {
	options    Options
	addresses  *egress.Guard
	transports recent[poolKey, *http.Transport]
	tokens     recent[tokenKey, auth.Cache]
	hosts      inUse[string, *fair.Turns[verify.Account]]
	apis       recent[apiKey, bool] // whether they have the referrers API, by their last answer
	backOffs   recent[backOffKey, time.Time]
	shared     inUse[sharedKey, *shared]
	paces      recent[verify.Account, *pace]
	memory     *fair.Gate[verify.Account] // memory for answers that are being read
}

// tokenKey identifies a token cache. oras-go keys tokens by host alone, so no two
// tenants and no two credentials may share a cache.
type tokenKey struct {
	namespace  verify.Namespace
	uid        string
	host       string
	credential [sha256.Size]byte
}

// NewClient returns a Client; a process needs one.
func NewClient(options Options) *Client {
	options.DialTimeout = cmp.Or(max(options.DialTimeout, 0), defaultDialTimeout)
	options.RequestTimeout = cmp.Or(max(options.RequestTimeout, 0), defaultRequestTimeout)
	options.PerHost = cmp.Or(max(options.PerHost, 0), DefaultPerHost)
	options.BytesPerSecond = cmp.Or(max(options.BytesPerSecond, 0), DefaultBytesPerSecond)
	options.PerSecond = cmp.Or(max(options.PerSecond, 0), DefaultPerSecond)
	return &Client{
		options:   options,
		addresses: egress.NewGuard(options.DeniedPrefixes...).With(options.Endpoints),
		transports: otter.Must(&otter.Options[poolKey, *http.Transport]{MaximumSize: maxTransports,
			OnDeletion: func(e otter.DeletionEvent[poolKey, *http.Transport]) { e.Value.CloseIdleConnections() }}),
		tokens: otter.Must(&otter.Options[tokenKey, auth.Cache]{MaximumSize: maxTokenCaches,
			ExpiryCalculator: otter.ExpiryCreating[tokenKey, auth.Cache](tokenCacheLifetime)}),
		paces: otter.Must(&otter.Options[verify.Account, *pace]{MaximumSize: maxHosts,
			ExpiryCalculator: otter.ExpiryAccessing[verify.Account, *pace](time.Minute)}),
		apis: otter.Must(&otter.Options[apiKey, bool]{MaximumSize: maxHosts,
			ExpiryCalculator: otter.ExpiryWriting[apiKey, bool](capabilityLifetime)}),
		memory: fair.NewGate[verify.Account](maxAnswersBytes),
		hosts: inUse[string,
			*fair.Turns[verify.Account]]{idle: otter.Must(&otter.Options[string, *fair.Turns[verify.Account]]{MaximumSize: maxHosts})},
		shared: inUse[sharedKey, *shared]{idle: otter.Must(&otter.Options[sharedKey, *shared]{MaximumSize: maxHosts})},
		backOffs: otter.Must(&otter.Options[backOffKey, time.Time]{MaximumSize: maxHosts,
			ExpiryCalculator: otter.ExpiryWriting[backOffKey, time.Time](maxBackOff)}),
	}
}

// Close closes idle connections.
func (c *Client) Close() {
	for transport := range c.transports.Values() {
		transport.CloseIdleConnections()
	}
}

// Forget drops the state of a deleted namespace. The pace and the pauses of a shared account
// stay, and so do pauses at hosts that a cluster admin named: deleting a namespace must not end
// them.
func (c *Client) Forget(namespace verify.Namespace) {
	for key := range c.tokens.Keys() {
		if key.namespace == namespace {
			c.tokens.Invalidate(key)
		}
	}
	account := namespace.Account()
	for key := range c.apis.Keys() {
		if key.account == account {
			c.apis.Invalidate(key)
		}
	}
	for key := range c.backOffs.Keys() {
		if key.account == account {
			c.backOffs.Invalidate(key)
		}
	}
	c.paces.Invalidate(account)
}

// For returns the registries that one tenant may reach. It is cheap and does not connect.
func (c *Client) For(access Access) verify.Registry {
	return &session{client: c, access: access}
}

// tokenCache returns the tokens of one tenant's credential for one host. They survive
// unrelated edits of the tenant's resources.
func (c *Client) tokenCache(access Access, host string, credential Credential) auth.Cache {
	key := tokenKey{namespace: access.Namespace, uid: access.UID, host: host, credential: sha256.Sum256(fmt.Appendf(nil, "%q", credential))}
	cache, _ := c.tokens.ComputeIfAbsent(key, func() (auth.Cache, bool) { return auth.NewCache(), false })
	return cache
}
