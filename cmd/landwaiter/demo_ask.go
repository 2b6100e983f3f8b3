package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// gatekeeper asks as OPA Gatekeeper does: HTTP/1.1, TLS 1.3, its webhook's
// certificate as client certificate, pooled connections.
type gatekeeper struct {
	client *http.Client
	url    string
}

func newGatekeeper(authority *fixture.Authority, client *fixture.Certificate) *gatekeeper {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertificatePEM)
	return &gatekeeper{client: &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: 10,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{client.TLS}},
	}}}
}

// maxAnswerBytes bounds what the demo reads of an answer.
const maxAnswerBytes = 8 << 20

// verify sends one key and returns its item.
func (g *gatekeeper) verify(ctx context.Context, key string) (item externaldata.Item, took time.Duration, err error) {
	body, err := json.Marshal(externaldata.NewProviderRequest([]string{key}))
	if err != nil {
		return item, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/verify", bytes.NewReader(body))
	if err != nil {
		return item, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := g.client.Do(req)
	if err != nil {
		return item, 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	took = time.Since(began)
	if err != nil {
		return item, took, err
	}
	var answer externaldata.ProviderResponse
	if err := json.Unmarshal(text, &answer); err != nil {
		return item, took, fmt.Errorf("the answer is not a ProviderResponse: %w", err)
	}
	if said := answer.Response.SystemError; said != "" {
		return item, took, fmt.Errorf("system error: %s", said)
	}
	if len(answer.Response.Items) != 1 || answer.Response.Items[0].Key != key {
		return item, took, fmt.Errorf("asked for 1 key, answered for %d", len(answer.Response.Items))
	}
	return answer.Response.Items[0], took, nil
}

// judge reads an item as a constraint template would: allowed only if isSuccess
// is exactly true.
func judge(item externaldata.Item) (verdict, why string) {
	if item.Error != "" {
		return "refused", item.Error
	}
	value, _ := item.Value.(map[string]any)
	why, _ = value["reason"].(string)
	if success, ok := value["isSuccess"].(bool); ok && success {
		return "allowed", why
	}
	return "denied", why
}

// table asks every question twice and prints the answers. It returns how many
// were not the expected ones.
func (s *scene) table(ctx context.Context, out io.Writer, asking *gatekeeper) (wrong int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nVERDICT\tNAMESPACE\tCOLD\tWARM\tWHAT\tKEY\tWHY")
	for _, a := range s.asks {
		item, cold, err := asking.verify(ctx, a.key)
		if err != nil {
			return wrong, fmt.Errorf("ask for %s: %w", a.key, err)
		}
		again, warm, err := asking.verify(ctx, a.key)
		if err != nil {
			return wrong, fmt.Errorf("ask again for %s: %w", a.key, err)
		}
		verdict, why := judge(item)
		second, _ := judge(again)
		if verdict != a.want || second != a.want {
			wrong++
			verdict += fmt.Sprintf(" then %s, expected %s", second, a.want)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", verdict, a.namespace(), cold.Round(10*time.Microsecond),
			warm.Round(10*time.Microsecond), a.title, shortKey(a.key), why)
	}
	return wrong, w.Flush()
}

// shortKey cuts the digest of a key to what a person compares.
func shortKey(key string) string {
	name, digest, found := strings.Cut(key, "@")
	if !found {
		return key
	}
	return name + "@" + short(digest) + "…"
}

// waitReady polls until the provider says that it is ready, or has ended.
func waitReady(ctx context.Context, url string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case err := <-ended:
			return fmt.Errorf("the provider ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the provider did not become ready: %w", ctx.Err())
		}
	}
}
