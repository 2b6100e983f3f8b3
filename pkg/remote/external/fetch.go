package external

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// fetchers returns the Fetch of each kind.
func (n network) fetchers() map[Kind]Fetch {
	to := func(fetch func(network, context.Context, Source) (Content, error)) Fetch {
		return func(ctx context.Context, source Source) (Content, error) { return fetch(n.of(source), ctx, source) }
	}
	lasting := func(fetch func(network, context.Context, Source) ([]byte, error)) Fetch {
		return to(func(n network, ctx context.Context, source Source) (Content, error) {
			content, err := fetch(n, ctx, source)
			return Content{Bytes: content}, err
		})
	}
	return map[Kind]Fetch{VaultKeys: lasting(network.fetchVault), VaultCertificates: lasting(network.fetchVault),
		KMS: lasting(network.fetchKMS),
		TUF: to(network.fetchTUF), Registry: to(network.fetchRegistry)}
}

// fetch fetches a source once, if its owner is permitted to.
func (f *Fetcher) fetch(ctx context.Context, source Source) (Content, error) {
	if err := source.permitted(f.hosts); err != nil {
		return Content{}, err
	}
	if err := f.refused(source.As); err != nil {
		return Content{}, err
	}
	fetch, ok := f.options.Fetch[source.Kind]
	if !ok {
		return Content{}, fmt.Errorf("%s is not a kind that can be fetched", source)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	content, err := fetch(ctx, source)
	switch {
	case err != nil:
		return Content{}, source.failed(err)
	case len(content.Bytes) == 0:
		return Content{}, fmt.Errorf("fetch %s: the content is empty", source)
	case len(content.Bytes) > maxContent:
		return Content{}, fmt.Errorf("fetch %s: the content has %d bytes, the limit is %d", source, len(content.Bytes), maxContent)
	}
	return content, nil
}

// UnansweredError says that a source could not be fetched because of something outside the resource that names it.
type UnansweredError struct {
	Err error
	// Server is the server that did not answer, and Instead the alternative to repairing it, as the end of a
	// clause.
	Server, Instead string
}

// Error returns why the source could not be fetched.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnansweredError) Unwrap() error { return e.Err }

// failed returns the error for a source that could not be fetched.
func (s Source) failed(err error) error {
	why := fmt.Errorf("%s could not be fetched: %w", s.what(), shown(err))
	var host string
	var network *egress.Error
	if errors.As(err, &network) {
		host = network.Host
	}
	var busy unwell
	switch {
	case s.key() == publicGood():
	case errors.As(err, &busy), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case network != nil && slices.Contains([]egress.Cause{egress.Broken, egress.Unreachable, egress.Late, egress.Proxied}, network.Cause):
	default: // the resource may be wrong
		return why
	}
	return s.unanswered(why, host)
}

// unanswered returns an error that a change of the resource cannot fix.
func (s Source) unanswered(why error, host string) error {
	if s.Kind == TUF && s.Address == "" {
		return &UnansweredError{why, PublicGoodHost, "; or reference a TrustStore with a mirror (source.tuf) or a copy of the root " +
			"(source.inline)"}
	}
	return &UnansweredError{Err: why, Server: cmp.Or(host, "the server")}
}

// refused returns an error where sources may not use the identity of this process.
func (f *Fetcher) refused(as Identity) error {
	if _, ambient := as.(pod); ambient && !f.options.UnsafePod {
		return problem("it is read with the cloud identity of Landwaiter's pod, which this machine does not have; its own is never used")
	}
	return nil
}

// permitted returns an error if the owner may not fetch the source: a tenant only reaches
// hosts that an admin has listed, and never uses the identity of this process.
func (s Source) permitted(hosts egress.Hosts) error {
	address, err := url.Parse(s.Address)
	switch s.Kind {
	case TUF, VaultKeys, VaultCertificates:
		if s.Kind == TUF && s.Address == "" {
			return nil // Sigstore's own, the same for everybody
		}
		if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil {
			return fmt.Errorf("%.200q is not an https address", s.Address)
		}
	case KMS, Registry:
	}
	if s.Owner == verify.Cluster {
		return nil
	}
	switch s.Kind {
	case KMS:
		if !s.own() {
			return errors.New("a namespace's resource needs credentials of its own for a key management service: set spec.source.kms.secretRef or " +
				"serviceAccount")
		}
		if scheme, rest, _ := strings.Cut(s.Address, "://"); scheme != "gcpkms" && scheme != "azurekms" && !strings.HasPrefix(rest, "/") {
			return fmt.Errorf("a namespace's resource cannot name the endpoint of a key management service: use %.20s:///…", scheme)
		}
		return nil
	case Registry:
		if !s.own() {
			return errors.New("a namespace's resource needs credentials of its own for a registry: set spec.identity.secretRef or serviceAccount")
		}
		return nil // fetchRegistry only talks to the cloud's own hosts
	case VaultKeys, VaultCertificates, TUF:
	}
	if !hosts.Contain(address) {
		return fmt.Errorf("host %.253s is not one that a namespace's resource may name; a cluster admin can allow it with --egress-host, or "+
			"make a ClusterTrustStore", address.Host)
	}
	if (s.Kind == VaultKeys || s.Kind == VaultCertificates) && !s.own() {
		return errors.New("a namespace's resource needs credentials of its own for Vault: set spec.source.vault.tokenSecretKeyRef or " +
			"serviceAccount")
	}
	return nil
}

// own reports whether the owner's namespace may use the identity.
func (s Source) own() bool {
	switch as := s.As.(type) {
	case given:
		return true
	case account:
		return as.namespace == string(s.Owner)
	}
	return false
}

// ask sends a request and reads the answer, which is JSON.
func ask(client *egress.Client, who string, r *http.Request, into any) error {
	status, body, err := client.Read(r)
	if err := refused(who, status, err); err != nil {
		return err
	}
	if json.Unmarshal(body, into) != nil {
		return problemf("the answer of %s is malformed", who)
	}
	return nil
}

// refused returns an error unless the answer has the expected status.
func refused(who string, status int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("ask %s: %w", who, err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusBadRequest && strings.HasSuffix(who, tokens):
		return problemf("%s refuses the credentials (%d)", who, status)
	case status == http.StatusNotFound:
		return problemf("%s has nothing of that name (404)", who)
	case status != http.StatusOK && status != http.StatusCreated:
		return answered(who, status)
	}
	return nil
}

// postJSON sends a document, with a bearer token unless it is empty.
func postJSON(ctx context.Context, client *egress.Client, who, address, token string, header http.Header, document, into any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return problem("the request cannot be written")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return problem("the address is malformed")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(client, who, r, into)
}

// tokens is the suffix of the name of a server that answers 400 to wrong credentials (RFC
// 6749 section 5.2).
const tokens = "token server"

// network creates the clients of one process. The zero value is the real network.
type network struct {
	tokens    Tokens
	endpoints egress.Endpoints
	// dial and roots replace connections and certificates, for tests.
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	roots []byte
	// proxy is the environment's proxy, nil for none.
	proxy *egress.Environment
}

// of returns the network for a source. The proxy is only used for hosts that a cluster admin
// or our code names: it resolves names beyond the guard's control.
func (n network) of(source Source) network {
	if source.Owner != verify.Cluster {
		n.proxy = nil
	}
	return n
}

// to returns a client for hosts that an admin or a cloud's own domain names. They may have
// private addresses, such as a cluster's Vault and a cloud's private endpoints. The caller
// closes it, which ends requests that a library left running.
func (n network) to(ctx context.Context, authority string, hosts ...string) (*egress.Client, error) {
	return n.client(ctx, egress.Options{Hosts: hosts, Reach: egress.Private, Roots: []byte(authority)})
}

func (n network) client(ctx context.Context, options egress.Options) (*egress.Client, error) {
	options.MaxBytes, options.Timeout, options.Dial, options.Endpoints, options.Proxy = maxReply, fetchTimeout, n.dial, n.endpoints, n.proxy
	if len(options.Roots) == 0 {
		options.Roots = n.roots
	}
	client, err := egress.New(ctx, options)
	if err != nil {
		return nil, problem(err.Error()) // of a given host list or bundle
	}
	return client, nil
}

// problem is an error in our own words. The owner of a resource may see it, because it
// contains nothing from a server except numbers.
type problem string

// Error implements error.
func (p problem) Error() string { return string(p) }

// unwell is a problem for which the server itself is to blame.
type unwell struct{ problem }

// Unwrap returns the problem.
func (u unwell) Unwrap() error { return u.problem }

func problemf(format string, values ...any) problem { return problem(fmt.Sprintf(format, values...)) }

// RefusedError is why the content of a TUF repository does not count: its keys did not sign
// it, it is incomplete, or it has expired.
type RefusedError struct{ why problem }

// Error implements error.
func (e *RefusedError) Error() string { return string(e.why) }

// Unwrap returns the reason, which may be shown.
func (e *RefusedError) Unwrap() error { return e.why }

// errUnusable replaces errors in words other than ours: the errors of libraries quote
// servers.
const errUnusable = problem("its answer cannot be used")

// shown reduces an error to the text that the owner of a resource may read.
func shown(err error) error {
	var network *egress.Error
	var own problem
	var tokens ownWords
	switch {
	case errors.As(err, &tokens):
		return tokens
	case errors.As(err, &network):
		return network
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem("it took too long")
	}
	return errUnusable
}

// answered returns the error for an answer with the wrong status.
func answered(who string, status int) error {
	said := problemf("%s answered with status %d", who, status)
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return unwell{said}
	}
	return said
}
