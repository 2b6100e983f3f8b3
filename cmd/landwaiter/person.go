package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// requestTimeout bounds a request to an API server, which ends most requests itself after
// a minute.
const requestTimeout = time.Minute

// bounded returns a context for reading a cluster in at most timeout, and a function that
// turns an error of that reading into the command's. Requests through config are also
// bounded, because discovery ignores contexts.
func bounded(parent context.Context, config *rest.Config, timeout time.Duration) (context.Context, context.CancelFunc, func(error) error) {
	config.Timeout = min(timeout, requestTimeout)
	ctx, cancel := context.WithTimeout(parent, timeout)
	return ctx, cancel, func(err error) error {
		// The request may time out before ctx reports it.
		if end, _ := ctx.Deadline(); !time.Now().Before(end) && parent.Err() == nil {
			err = fmt.Errorf("the cluster was not read in %s (--timeout): %w", timeout, err)
		}
		return unreachable(err)
	}
}

// person defines the cluster, the user and the namespace of commands, by the flags of kubectl, and
// other common flags.
type person struct {
	*genericclioptions.ConfigFlags
	*shared
}

func newPerson() person {
	flags := genericclioptions.NewConfigFlags(false)
	flags.CacheDir, flags.Timeout, flags.DisableCompression = nil, nil, nil // nothing is kept, and every command has a timeout
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = "landwaiter/" + program.Version()
		return config
	}
	return person{flags, &shared{output: formatTable, account: defaultAccount}}
}

// errNoCluster says that no setting selects a cluster.
var errNoCluster = errors.New("there is no kubeconfig file, and this is no pod of a cluster")

// config returns the person's configuration for the API server, by the rules of kubectl, and the
// namespace of --namespace or of the context. It returns [errNoCluster] if there is none.
func (p person) config() (*rest.Config, string, error) {
	const cannot = "find the Kubernetes API (use --kubeconfig FILE and --context NAME): %w"
	loaded := p.ToRawKubeConfigLoader()
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf(cannot, err)
	}
	if clientcmdapi.IsConfigEmpty(&raw) && *p.APIServer == "" {
		if _, err := rest.InClusterConfig(); err != nil { // kubectl would ask localhost
			return nil, "", fmt.Errorf(cannot, errNoCluster)
		}
	}
	config, err := p.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf(cannot, err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace of the context (use --namespace NAME): %w", err)
	}
	return config, namespace, nil
}

// scope returns the person's configuration for the API server, and the namespace that the
// flags select: [verify.Cluster] means all.
func (p person) scope(all bool) (*rest.Config, verify.Namespace, error) {
	if all && *p.Namespace != "" {
		return nil, "", errors.New("--namespace and --all-namespaces cannot be used together")
	}
	config, namespace, err := p.config()
	if err != nil || all {
		return config, verify.Cluster, err
	}
	ns, err := verify.ParseNamespace(namespace)
	if err != nil {
		return nil, "", fmt.Errorf("--namespace: %w", err)
	}
	return config, ns, nil
}

// registerAll declares the flag for all namespaces.
func registerAll(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVarP(all, "all-namespaces", "A", false, "cover all namespaces")
}
