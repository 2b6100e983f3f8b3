package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// requestTimeout bounds a request to an API server, which ends most requests itself after
// a minute.
const requestTimeout = time.Minute

// bounded returns a context for reading a cluster in at most timeout, and what makes an
// error of that reading the command's. Requests through config are bounded as well, because
// discovery does not obey a context.
func bounded(parent context.Context, config *rest.Config, timeout time.Duration) (context.Context, context.CancelFunc, func(error) error) {
	config.Timeout = min(timeout, requestTimeout)
	ctx, cancel := context.WithTimeout(parent, timeout)
	return ctx, cancel, func(err error) error {
		// The context may hear of its own end a moment after the request did.
		if end, _ := ctx.Deadline(); !time.Now().Before(end) && parent.Err() == nil {
			err = fmt.Errorf("the cluster was not read in %s (--timeout): %w", timeout, err)
		}
		return unreachable(err)
	}
}

// personFlags say which cluster a command reads with the permissions of the person who calls
// it, and in which namespaces.
type personFlags struct {
	kubeconfig, context string
	namespace           string
	all                 bool
}

// registerCluster declares the flags that say which cluster.
func (p *personFlags) registerCluster(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "file that says how to reach the Kubernetes API (empty: KUBECONFIG, or ~/.kube/config)")
	f.StringVar(&p.context, "context", "", "context of the kubeconfig file (empty: the current one)")
}

// registerNamespaces declares the flags that say which namespaces.
func (p *personFlags) registerNamespaces(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&p.namespace, "namespace", "n", "", "namespace to look at (empty: that of the context)")
	f.BoolVarP(&p.all, "all-namespaces", "A", false, "look at all namespaces")
}

// config returns how the person reaches the API server, by the loading rules of kubectl,
// and the namespace of the context.
func (p *personFlags) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: p.context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the Kubernetes API (use --kubeconfig FILE and --context NAME): %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace of the context (use --namespace NAME): %w", err)
	}
	config.UserAgent = "landwaiter/" + program.Version()
	return config, namespace, nil
}

// scope returns how the person reaches the API server, and the namespace that the flags
// ask for: [verify.Cluster] stands for all.
func (p *personFlags) scope() (*rest.Config, verify.Namespace, error) {
	if p.all && p.namespace != "" {
		return nil, "", errors.New("--namespace and --all-namespaces exclude each other")
	}
	config, namespace, err := p.config()
	switch {
	case err != nil:
		return nil, "", err
	case p.all:
		return config, verify.Cluster, nil
	case p.namespace != "":
		namespace = p.namespace
	}
	ns, err := verify.ParseNamespace(namespace)
	if err != nil {
		return nil, "", fmt.Errorf("--namespace: %w", err)
	}
	return config, ns, nil
}
