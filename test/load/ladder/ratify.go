package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// ratifyVariable names the program of Ratify 1, at bin/ratify of its source, where its
// "make build-cli" writes it. Without it nothing is compared with Ratify.
const ratifyVariable = "LANDWAITER_RATIFY"

// ratifyVerify is where Ratify answers Gatekeeper.
const ratifyVerify = "/ratify/gatekeeper/v1/verify"

// ratify starts Ratify with the settings of its chart (a cache of ten seconds,
// metrics, INFO) and one key of cosign, as a file instead of CRDs. Besides the stage's own
// client, those of more CAs may ask.
func (s *stage) ratify(ctx context.Context, host string, more ...[]byte) (*server, error) {
	dir, err := s.certificates("ratify-", more...)
	if err != nil {
		return nil, fmt.Errorf("start Ratify: %w", err)
	}
	const signature = "application/vnd.dev.cosign.artifact.sig.v1+json"
	key, config := filepath.Join(dir, "cosign.pub"), filepath.Join(dir, "config.json")
	settings, err := json.Marshal(map[string]any{
		"logger":   map[string]any{"formatter": "text"},
		"executor": map[string]any{"verificationRequestTimeout": 4900},
		"store":    map[string]any{"version": "1.0.0", "plugins": []any{map[string]any{"name": "oras", "useHttp": true, "cosignEnabled": true}}},
		"policy": map[string]any{"version": "1.0.0", "plugin": map[string]any{"name": "configPolicy",
			"artifactVerificationPolicies": map[string]any{signature: "any"}}},
		"verifier": map[string]any{"version": "1.0.0", "plugins": []any{map[string]any{"name": "cosign", "artifactTypes": signature, "key": key}}},
	})
	if err != nil {
		return nil, fmt.Errorf("start Ratify: %w", err)
	}
	for file, content := range map[string][]byte{key: s.key.PEM, config: settings} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, fmt.Errorf("start Ratify: %w", err)
		}
	}
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("start Ratify: %w", err)
	}
	process, err := cluster.StartProcess(s.dir,
		cluster.Command{Name: "ratify", Path: os.Getenv(ratifyVariable), Env: []string{"HOME=" + dir, "RATIFY_LOG_LEVEL=INFO"},
			Args: []string{"serve", "--http", fmt.Sprintf("127.0.0.1:%d", ports[0]), "--config", config,
				"--cert-dir", dir, "--ca-cert-file", filepath.Join(dir, "ca.crt"), "--cache-enabled", "--cache-type", "ristretto", "--cache-size", "256",
				"--cache-ttl", "10s",
				"--metrics-enabled", "--metrics-type", "prometheus", "--metrics-port", fmt.Sprint(ports[1])}})
	if err != nil {
		return nil, fmt.Errorf("start Ratify: %w", err)
	}
	s.running = append(s.running, process)
	r := &server{Process: process, url: fmt.Sprintf("https://127.0.0.1:%d", ports[0]), path: ratifyVerify}
	body, err := gatekeeper.Encode(host + "/nobody/signed:v1")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return r, process.Await(ctx, func(ctx context.Context) error {
		if ask(ctx, s.caller(r.url, true), request{body: body, path: r.path}, false) != right {
			return errors.New("it does not answer")
		}
		return nil
	})
}

// ratifyTemplate is Ratify's default ConstraintTemplate, from the source around its
// program, with the Provider that it names and a constraint for one namespace.
func ratifyTemplate(url string, authority []byte) (string, error) {
	template, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv(ratifyVariable)), "..", "library", "default", "template.yaml"))
	if err != nil {
		return "", fmt.Errorf("read Ratify's template (%s must name bin/ratify in its source): %w", ratifyVariable, err)
	}
	return string(template) + `
---
apiVersion: externaldata.gatekeeper.sh/v1beta1
kind: Provider
metadata: {name: ratify-provider}
spec: {url: "` + url + ratifyVerify + `", timeout: 5, caBundle: ` + base64.StdEncoding.EncodeToString(authority) + `}
`, nil
}

// ratifyConstraint gives a namespace to Ratify.
const ratifyConstraint = `
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: RatifyVerification, metadata: {name: ratify},
  spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [ladder-ratify]}}}
`

// coldBeside verifies the signed images from nothing, with the program and with Ratify in
// turns, each started for its turn. Without Ratify it measures nothing.
func coldBeside(ctx context.Context, s *stage) ([]figure, error) {
	if os.Getenv(ratifyVariable) == "" {
		return nil, nil
	}
	var throughput, processorTime []float64
	var rested [2][]usage
	figures := []figure{{Name: "cold, beside Ratify: Landwaiter"}, {Name: "cold, beside Ratify: Ratify"}}
	for round := range s.rounds {
		turns := make([]figure, 2)
		for i := range turns {
			i = (i + round) % 2
			f, rest, err := s.coldTurn(ctx, figures[i].Name, i == 1)
			if err != nil {
				return nil, err
			}
			turns[i], rested[i] = f, append(rested[i], rest)
			figures[i] = figures[i].and(turns[i])
			figures[i].Name = turns[i].Name
		}
		throughput = append(throughput, turns[0].PerSecond/turns[1].PerSecond)
		processorTime = append(processorTime, turns[0].Processor/turns[1].Processor)
	}
	for i := range figures {
		f := &figures[i]
		f.Remark = fmt.Sprintf("%.2f ms of processor time an image; at rest %s resident, %s without files", f.Processor*1e3/float64(f.Requests),
			medianOf(rested[i], func(u usage) float64 { return u.resident }), medianOf(rested[i], func(u usage) float64 { return u.own }))
	}
	f := &figures[0]
	f.ThroughputOverRatify, f.ProviderOverRatify = ratioOf(throughput), ratioOf(processorTime)
	f.Remark += fmt.Sprintf("; of Ratify: %s of its throughput, %s of its processor time", f.ThroughputOverRatify, f.ProviderOverRatify)
	return figures, nil
}

// medianOf returns the median of several usages, in MiB.
func medianOf(of []usage, which func(usage) float64) string {
	values := make([]float64, len(of))
	for i, u := range of {
		values[i] = which(u)
	}
	return fmt.Sprintf("%.0f MiB", ratioOf(values).Median)
}

// coldTurn starts a program, and asks it for each signed image once. It also returns the
// memory that it had before.
func (s *stage) coldTurn(ctx context.Context, name string, ratify bool) (figure, usage, error) {
	start := func() (*server, error) { return s.provide(ctx, 1) }
	if ratify {
		start = func() (*server, error) { return s.ratify(ctx, s.registry.Host()) }
	}
	p, err := start()
	if err != nil {
		return figure{}, usage{}, err
	}
	defer p.Kill()
	rest, began := memory(p.PID()), processor(p.PID()).Seconds()
	signed := s.signedImages()
	f := load{client: s.caller(p.url, true), connections: s.connections, check: true, next: func(i int) (request, bool) {
		if i >= len(signed) {
			return request{}, false
		}
		if !ratify {
			r, err := newRequest(namespace(0), signed[i])
			return r, err == nil
		}
		body, err := gatekeeper.Encode(signed[i].reference)
		return request{body: body, path: p.path, want: map[string]bool{signed[i].reference: true}}, err == nil
	}}.run(ctx, name)
	f.Processor = processor(p.PID()).Seconds() - began
	return f, rest, nil
}
