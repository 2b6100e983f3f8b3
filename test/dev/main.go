// Command dev leaves a whole cluster up for a person: API server, Gatekeeper,
// Landwaiter from its chart, and a registry with signed and unsigned images.
// `make dev` runs it; it ends, with everything it started, on Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "landwaiter-dev-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintln(os.Stderr, "dev: logs are kept in", filepath.Join(dir, "logs"))
	}()
	options := stack.Options{
		Options: cluster.Options{Tools: os.Getenv("LANDWAITER_CLUSTER_TOOLS"), Dir: dir, Progress: os.Stderr, AuditInterval: 10 * time.Second},
		Root:    ".", Binary: os.Getenv("LANDWAITER_BINARY"), ChartTools: os.Getenv("LANDWAITER_CHART_TOOLS"),
	}
	if options.Tools == "" || options.ChartTools == "" || options.Binary == "" {
		return errors.New("LANDWAITER_CLUSTER_TOOLS, LANDWAITER_CHART_TOOLS and LANDWAITER_BINARY are not set; run make dev")
	}
	s, err := stack.Start(ctx, options)
	if err != nil {
		return err
	}
	defer s.Stop()
	text, err := furnish(ctx, s)
	if err != nil {
		return err
	}
	fmt.Print(text)
	<-ctx.Done()
	fmt.Println("\ndev: ending")
	return nil
}

// resources are a key for the cluster and a rule that its images be signed.
const resources = `
apiVersion: landwaiter.dev/v1alpha1
kind: ClusterTrustStore
metadata: {name: platform-keys}
spec:
  type: PublicKeys
  source:
    inline: |
%s
---
apiVersion: landwaiter.dev/v1alpha1
kind: ClusterVerifier
metadata: {name: platform-signature}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: platform-keys}]}}}
---
apiVersion: landwaiter.dev/v1alpha1
kind: ClusterVerificationPolicy
metadata: {name: signed}
spec: {rules: [{images: ["**"], require: [{anyOf: [platform-signature]}]}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
`

// furnish makes images and resources, and returns what a person can try.
func furnish(ctx context.Context, s *stack.Stack) (string, error) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return "", err
	}
	signed, err := s.Registry.PushImage(ctx, "app/signed", "v1")
	if err != nil {
		return "", err
	}
	if _, err := s.Registry.SignCosign(ctx, signed, key, fixture.CosignOptions{}); err != nil {
		return "", err
	}
	if _, err := s.Registry.PushImage(ctx, "app/unsigned", "v1"); err != nil {
		return "", err
	}
	pem := "      " + strings.ReplaceAll(strings.TrimSpace(string(key.PEM)), "\n", "\n      ")
	objects, err := cluster.Decode(fmt.Appendf(nil, resources, pem))
	if err != nil {
		return "", err
	}
	if err := s.Apply(ctx, objects...); err != nil {
		return "", err
	}
	return fmt.Sprintf(`
A Kubernetes API server with Gatekeeper and Landwaiter is up. In another terminal:

  export KUBECONFIG=%s

  kubectl run good --namespace team-a --image %s/app/signed:v1      # admitted
  kubectl run bad  --namespace team-a --image %[2]s/app/unsigned:v1    # denied, with the reason
  kubectl get landwaiter --all-namespaces
  kubectl get clusterverifiers,clustertruststores,clusterverificationpolicies,clusterstores

There are no nodes: admitted pods stay Pending. Logs: %[3]s
Ctrl-C ends everything.
`, s.Kubeconfig(), s.Registry.Host(), s.LogDir()), nil
}
