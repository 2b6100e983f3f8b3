package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

// ownConfig returns the configuration for the API server: from the files in the variable
// KUBECONFIG, or without it from the account of its pod. It reads no file in a home
// directory, so an image cannot bring one.
func ownConfig() (config *rest.Config, err error) {
	if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); files != "" {
		config, err = configOf(files)
	} else {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil,
			fmt.Errorf("find the Kubernetes API (outside a cluster, set KUBECONFIG to a file, or run serve with --config-dir DIR): %w", err)
	}
	config.UserAgent = "landwaiter/" + program.Version()
	return config, nil
}

// configOf merges kubeconfig files, in a list as for kubectl. Unlike kubectl, it does not fall
// back to another cluster if none of them exists.
func configOf(files string) (*rest.Config, error) {
	rules := clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(files)}
	loaded, err := rules.Load()
	if err != nil {
		return nil, err
	}
	if clientcmdapi.IsConfigEmpty(loaded) {
		return nil, errors.New("no file in KUBECONFIG exists and says how to reach a cluster")
	}
	return clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
}
