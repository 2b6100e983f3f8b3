package program

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/pflag"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// Service are the flags of every command that verifies.
type Service struct {
	// Options are the options of the service; flags of one program set further ones.
	Options    service.Options
	Redis      Redis
	Exceptions Exceptions

	clusterCIDRs []string
	endpoints    []string
}

// The flag that names the namespace of objects that cluster resources reference.
const (
	ClusterResourcesFlag  = "cluster-resource-namespace"
	ClusterResourcesUsage = "namespace of what Cluster… resources reference, such as Secrets (empty: Landwaiter's own, or landwaiter-system)"
)

// RegisterNetwork declares the flags for allowed hosts and their addresses.
func (f *Service) RegisterNetwork(flags *pflag.FlagSet) {
	flags.StringVar(&f.Options.ClusterResourceNamespace, ClusterResourcesFlag, "", ClusterResourcesUsage)
	flags.StringSliceVar(&f.clusterCIDRs, "cluster-cidr", nil,
		"address range of pods and Services that cannot contain a registry, in addition to private ranges (repeatable)")
	flags.StringSliceVar(&f.Options.EgressHosts, "egress-host", nil,
		"host or host:port that certificates and TrustStores of namespaces can reference (repeatable; empty: none)")
	flags.StringArrayVar(&f.endpoints, "cloud-endpoint", nil,
		"HOST=ADDRESS:PORT of a private endpoint: connect to ADDRESS:PORT instead of the cloud's HOST (repeatable)")
}

// Complete returns the Options that the flags describe. It only includes limits of exceptions
// if [Exceptions.Register] declared their flags.
func (f *Service) Complete() (service.Options, error) {
	options := f.Options
	options.Version = Version()
	for _, s := range f.clusterCIDRs {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return service.Options{}, fmt.Errorf("--cluster-cidr %q is not an address range such as 10.96.0.0/12: %w", s, err)
		}
		options.Registry.DeniedPrefixes = append(options.Registry.DeniedPrefixes, prefix)
	}
	if namespace := options.ClusterResourceNamespace; namespace != "" {
		if _, err := verify.ParseNamespace(namespace); err != nil {
			return service.Options{}, fmt.Errorf("--%s: %w", ClusterResourcesFlag, err)
		}
	}
	if f.Exceptions.declared {
		var err error
		if options.Exceptions, err = f.Exceptions.Limits(); err != nil {
			return service.Options{}, err
		}
	}
	endpoints, err := egress.ParseEndpoints(f.endpoints)
	if err != nil {
		return service.Options{}, fmt.Errorf("--cloud-endpoint: %w", err)
	}
	options.External.Endpoints = endpoints
	if n := options.Engine.InFlightPerAccount; n != 0 && n < verify.MinInFlight {
		return service.Options{},
			fmt.Errorf("--limit in-flight-per-namespace is %d, the least is %d: one request verifies as many in parallel", n, verify.MinInFlight)
	}
	if options.External.Proxy, err = egress.ParseEnvironment(os.Getenv); err != nil {
		return service.Options{}, err
	}
	options.Redis, err = f.Redis.Options()
	return options, err
}
