// Package gatekeeper asks a provider as OPA Gatekeeper does: HTTP/1.1, TLS 1.3,
// the webhook's certificate as client certificate, pooled connections. It is the
// one such client of the tests, the benchmarks and the demo. It knows nothing of
// package provider, whose tests use it too.
package gatekeeper

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
)

const (
	// VerifyPath is where a provider answers for keys with a namespace.
	VerifyPath = "/v1/verify"
	// VerdictPath is where Landwaiter answers the same keys with as much as its own templates read.
	VerdictPath = "/v1/verdict"

	// apiVersion is the version of the protocol.
	apiVersion = "externaldata.gatekeeper.sh/v1beta1"
	// connections is how many idle connections Gatekeeper keeps to a provider.
	connections = 10
	// maxAnswerBytes bounds an answer. A provider's own limit is lower.
	maxAnswerBytes = 64 << 20
)

// Options configure a [Client].
type Options struct {
	// URL of the provider, without a path.
	URL string
	// RootCAs are PEM certificates of the CAs that the provider may have.
	RootCAs []byte
	// InsecureAnyServer trusts whoever answers at URL.
	InsecureAnyServer bool
	// Certificate is shown to the provider; nil shows none.
	Certificate *tls.Certificate
	// Timeout bounds one call. Default: none.
	Timeout time.Duration
	// Connections bounds the idle connections, and with OnlyConnections all of them.
	// Default 10.
	Connections     int
	OnlyConnections bool
	// HandshakeEach opens a connection for each call, as Gatekeeper did up to 3.21.
	HandshakeEach bool
}

// Client asks one provider. It is safe for concurrent use.
type Client struct {
	HTTP *http.Client
	URL  string // without a path
}

// New returns a client.
func New(options Options) *Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(options.RootCAs)
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, InsecureSkipVerify: options.InsecureAnyServer}
	if options.Certificate != nil {
		config.Certificates = []tls.Certificate{*options.Certificate}
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: options.HandshakeEach,
		MaxIdleConnsPerHost: cmp.Or(options.Connections, connections)}
	if options.OnlyConnections {
		transport.MaxConnsPerHost = transport.MaxIdleConnsPerHost
	}
	return &Client{URL: options.URL, HTTP: &http.Client{Timeout: options.Timeout, Transport: transport}}
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Ask sends keys and decodes the answer with [Decode], whatever its status.
func (c *Client) Ask(ctx context.Context, path string, keys ...string) (externaldata.Response, error) {
	request, err := Encode(keys...)
	if err != nil {
		return externaldata.Response{}, err
	}
	answer, _, err := c.Send(ctx, path, request)
	if err != nil {
		return externaldata.Response{}, err
	}
	return Decode(answer)
}

// Send posts a body and returns the answer with its status.
func (c *Client) Send(ctx context.Context, path string, body []byte) (answer []byte, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("ask the provider: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("ask the provider: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, response.StatusCode, fmt.Errorf("read the answer: %w", err)
	}
	return answer, response.StatusCode, nil
}

// Encode returns the ProviderRequest for keys.
func Encode(keys ...string) ([]byte, error) {
	body, err := json.Marshal(externaldata.NewProviderRequest(keys))
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return body, nil
}

// Decode reads a ProviderResponse. It returns an error for what no answer may be:
// of another version or kind, a system error that is not idempotent, or with items beside a
// system error, which Gatekeeper would cache.
func Decode(body []byte) (externaldata.Response, error) {
	var answer externaldata.ProviderResponse
	if err := json.Unmarshal(body, &answer); err != nil {
		return externaldata.Response{}, fmt.Errorf("the answer is not a ProviderResponse: %w", err)
	}
	switch {
	case answer.APIVersion != apiVersion || answer.Kind != externaldata.ProviderResponseKind:
		return externaldata.Response{}, fmt.Errorf("the answer is %s %s, not a ProviderResponse", answer.APIVersion, answer.Kind)
	case !answer.Response.Idempotent && answer.Response.SystemError != "":
		return externaldata.Response{}, errors.New("the system error is not idempotent")
	case answer.Response.SystemError != "" && len(answer.Response.Items) > 0:
		return externaldata.Response{}, errors.New("the answer has items beside a system error")
	}
	return answer.Response, nil
}

// Items returns the items of an answer by key.
func Items(response externaldata.Response) map[string]externaldata.Item {
	items := make(map[string]externaldata.Item, len(response.Items))
	for _, item := range response.Items {
		items[item.Key] = item
	}
	return items
}

// Verdict is what a ConstraintTemplate makes of an item.
type Verdict string

// The verdicts. Refused means that the item is an error: the key was not looked up.
const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied"
	Refused Verdict = "refused"
)

// Judge reads an item as a ConstraintTemplate does: Allowed only if isSuccess is
// exactly true.
func Judge(item externaldata.Item) (verdict Verdict, why string) {
	if item.Error != "" {
		return Refused, item.Error
	}
	value, _ := item.Value.(map[string]any)
	why, _ = value["reason"].(string)
	if success, ok := value["isSuccess"].(bool); ok && success {
		return Allowed, why
	}
	return Denied, why
}
