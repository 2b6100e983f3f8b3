// Package provider is the HTTPS edge. It speaks Gatekeeper's external data protocol
// (externaldata.gatekeeper.sh/v1beta1) and answers a request with exactly one item
// per distinct key, or with a system error and no items.
//
// It never answers partially or late, takes a namespace from an image string, or sends an
// item for an undecided key: Gatekeeper caches items for minutes and admits a key that has
// none.
package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Decider decides about one image in one namespace. It never fails: an image that
// could not be decided has an Undecided verdict. It is safe for concurrent use.
type Decider interface {
	Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result
	// Recall returns the same answer if it is known without waiting, else false.
	Recall(namespace verify.Namespace, ref image.Reference) (verify.Result, bool)
	// Account returns the account that pays for requests about a namespace.
	Account(namespace verify.Namespace) verify.Account
}

// Resolver pins an image to the current digest of its tag. An error is transient unless it is
// a [verify.PermanentError]. It is safe for concurrent use.
type Resolver interface {
	Resolve(ctx context.Context, namespace verify.Namespace, ref image.Reference) (image.Reference, error)
}

// Options are the settings of a [Server]. Address and TLS are required. The zero
// value of any other field means its default; negative numbers and durations are
// errors.
type Options struct {
	// Address is where the HTTPS edge listens, such as ":8443". HealthAddress serves /healthz
	// and /readyz, MetricsAddress /metrics, both over plain HTTP; empty disables them.
	Address, HealthAddress, MetricsAddress string
	// TLS has the serving certificate and the CAs of clients.
	TLS TLSSource
	// ClientNames lists DNS names; a client certificate must have one of them. Names must match
	// exactly. Empty means every client of the CAs.
	ClientNames []string
	// InsecureNoClientAuth accepts every client. It contradicts client CAs of TLS; a server with
	// neither is an error.
	InsecureNoClientAuth bool

	// VerifyTimeout and MutateTimeout bound the time to an answer. They must be below
	// the timeouts of the Provider objects and of Gatekeeper's webhooks, which are 3 s
	// and 1 s by default. Defaults 2.5 s and 0.8 s.
	VerifyTimeout, MutateTimeout time.Duration
	// DropTag makes mutation answer "repository@digest", as Ratify does, instead
	// of "repository:tag@digest".
	DropTag bool
	// MaxKeys bounds the keys of the requests in flight, including known ones and those that
	// wait for the same image. An account may have at most as many as are free for others; a
	// request that would exceed that immediately gets a system error. Default 4,096, which is 16
	// MiB of text.
	MaxKeys int

	// Ready returns nil once the Decider can decide; a nil Ready means always.
	Ready func() error
	// DrainDelay is how long the server accepts connections after /readyz has begun to
	// fail, so that load balancers notice. Default 0.
	DrainDelay time.Duration
	// GracePeriod is how long a stop waits for requests in flight. Default 10 s.
	GracePeriod time.Duration
	// Observers see every request, after the log and the metrics.
	Observers []Observer
	// NamespaceLabel returns a namespace's label in metrics. Clients choose namespaces, so it
	// bounds the series. Default: the names of the first 1,000, and one for all others.
	NamespaceLabel func(verify.Namespace) string
	// Quota returns the name of the ClusterQuota that applies to a namespace, "" if none does.
	// Default: none.
	Quota func(verify.Namespace) string
	// Contact returns the contact for a malformed key in one line, "" without one. Default: none.
	Contact func(verify.Namespace) string
	// Metrics registers the metrics and is served at /metrics. Default: a new
	// registry.
	Metrics *prometheus.Registry
}

func (o Options) withDefaults() Options {
	o.VerifyTimeout = cmp.Or(o.VerifyTimeout, DefaultVerifyTimeout)
	o.MutateTimeout = cmp.Or(o.MutateTimeout, DefaultMutateTimeout)
	o.MaxKeys = cmp.Or(o.MaxKeys, defaultMaxKeys)
	o.GracePeriod = cmp.Or(o.GracePeriod, DefaultGracePeriod)
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.NamespaceLabel == nil {
		first := &labels{limit: maxNamespaceLabels}
		o.NamespaceLabel = func(namespace verify.Namespace) string { return first.capped(namespace.Label()) }
	}
	if o.Contact == nil {
		o.Contact = func(verify.Namespace) string { return "" }
	}
	if o.Quota == nil {
		o.Quota = func(verify.Namespace) string { return "" }
	}
	return o
}

// Validate refuses settings that can only be mistakes. It does not check TLS, so that it can
// run before certificates are read; [New] checks everything.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Address == "":
		return errors.New("no address to listen on")
	case o.MaxKeys < 0, o.DrainDelay < 0, o.GracePeriod < 0:
		return errors.New("a negative limit or time makes no sense")
	}
	for name, timeout := range map[string]time.Duration{"verify": o.VerifyTimeout, "mutate": o.MutateTimeout} {
		if timeout < minTimeout || timeout > maxTimeout {
			return fmt.Errorf("the %s timeout %s is not between %s and %s", name, timeout, minTimeout, maxTimeout)
		}
	}
	return nil
}

// validateTLS refuses settings that would accept every client without saying so.
func (o Options) validateTLS() error {
	if o.TLS == nil {
		return errors.New("no TLS source is given")
	}
	authorities, err := o.TLS.ClientCAs()
	noClientCA := authorities == nil && err == nil
	switch {
	case noClientCA && !o.InsecureNoClientAuth:
		return errors.New("no client CA is given: anyone could ask; say InsecureNoClientAuth if that is meant")
	case !noClientCA && o.InsecureNoClientAuth:
		return errors.New("a client CA and InsecureNoClientAuth contradict each other")
	case len(o.ClientNames) > 0 && noClientCA:
		return errors.New("client names are given without a client CA: nothing would vouch for them")
	}
	return nil
}
