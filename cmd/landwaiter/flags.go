package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// serviceFlags are the flags of every command that verifies.
type serviceFlags struct {
	configDir    string
	required     bool // whether configDir must be set
	clusterCIDRs []string
	redis        redisFlags
	options      service.Options
}

func (f *serviceFlags) register(cmd *cobra.Command, configRequired bool) {
	flags := cmd.Flags()
	usage := "directory with resources as YAML or JSON files"
	if !configRequired {
		usage += ", instead of the Kubernetes API"
	}
	flags.StringVar(&f.configDir, "config-dir", "", usage)
	flags.StringSliceVar(&f.clusterCIDRs, "cluster-cidr", nil,
		"address range of pods and services that registries must not be in, besides the private ranges (repeatable)")
	flags.StringSliceVar(&f.options.EgressHosts, "egress-host", nil,
		"host or host:port that certificates may name as OCSP responder or for revocation lists, and namespaces' TrustStores as Vault or TUF mirror (repeatable; empty: none)")
	if f.required = configRequired; configRequired {
		if err := cmd.MarkFlagRequired("config-dir"); err != nil {
			panic(err) // the flag is declared just above
		}
	}
}

// complete returns the Options that the flags ask for.
func (f *serviceFlags) complete() (service.Options, error) {
	options := f.options
	options.Version = versionText()
	for _, s := range f.clusterCIDRs {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return service.Options{}, fmt.Errorf("--cluster-cidr %q is not an address range such as 10.96.0.0/12: %w", s, err)
		}
		options.Registry.DeniedPrefixes = append(options.Registry.DeniedPrefixes, prefix)
	}
	if n := options.Engine.InFlightPerAccount; n != 0 && n < verify.MinInFlight {
		return service.Options{}, fmt.Errorf("--in-flight-per-namespace is %d, the least is %d: one request verifies as many in parallel", n, verify.MinInFlight)
	}
	var err error
	options.Redis, err = f.redis.options()
	return options, err
}

// open returns the service of a server.
func (f *serviceFlags) open() (*service.Service, error) {
	options, err := f.complete()
	if err != nil {
		return nil, err
	}
	return service.New(options)
}

// load returns a service with the resources in --config-dir in force, for a command
// that runs once, and prints problems to stderr. Where the directory is optional and
// not given, there are no resources.
func (f *serviceFlags) load(ctx context.Context, stderr io.Writer) (*service.Service, error) {
	if f.required && f.configDir == "" {
		return nil, errors.New("--config-dir is empty, it must name a directory")
	}
	options, err := f.complete()
	if err != nil {
		return nil, err
	}
	s, problems, err := service.Load(ctx, f.configDir, options)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		fmt.Fprintf(stderr, "warning: %s: %s\n", p.Source, p.Message)
	}
	return s, nil
}
