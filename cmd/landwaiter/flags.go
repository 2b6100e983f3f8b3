package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// serviceFlags are the flags of every command that verifies.
type serviceFlags struct {
	configDir    string
	person       personFlags
	landwaiter   string // the namespace of the server
	exceptions   exceptionFlags
	files        []string // of -f
	anonymous    bool     // whether neither files nor a cluster are needed
	strict       bool     // whether problems of resources are errors
	clusterCIDRs []string
	endpoints    []string
	redis        redisFlags
	options      service.Options
}

// register declares the flags; instead says what is used without --config-dir.
func (f *serviceFlags) register(cmd *cobra.Command, instead string) {
	cmd.Flags().StringVar(&f.configDir, "config-dir", "", "directory with resources as YAML or JSON files"+instead)
	f.registerNetwork(cmd)
}

// registerLive declares the flags of a command that judges by a cluster alone.
func (f *serviceFlags) registerLive(cmd *cobra.Command) {
	f.registerNetwork(cmd)
	f.exceptions.register(cmd)
	f.registerServerNamespace(cmd)
	f.person.registerCluster(cmd)
}

const (
	clusterResourcesFlag  = "cluster-resource-namespace"
	clusterResourcesUsage = "namespace of the Secrets, ConfigMaps and ServiceAccounts that Cluster… resources reference (empty: Landwaiter's own, else landwaiter-system)"
)

// registerNetwork declares the flags that say what may be reached, and where it is.
func (f *serviceFlags) registerNetwork(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.options.ClusterResourceNamespace, clusterResourcesFlag, "", clusterResourcesUsage)
	flags.StringSliceVar(&f.clusterCIDRs, "cluster-cidr", nil,
		"address range of pods and services that registries must not be in, besides the private ranges (repeatable)")
	flags.StringSliceVar(&f.options.EgressHosts, "egress-host", nil,
		"host or host:port that certificates may name as OCSP responder or for revocation lists, and namespaces' TrustStores as Vault or TUF mirror (repeatable; empty: none)")
	flags.StringArrayVar(&f.endpoints, "cloud-endpoint", nil,
		"HOST=ADDRESS:PORT of a cloud's service or registry with a private endpoint: connect there instead of to the address of HOST; the certificate must still be for HOST (repeatable)")
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
	if namespace := options.ClusterResourceNamespace; namespace != "" {
		if _, err := verify.ParseNamespace(namespace); err != nil {
			return service.Options{}, fmt.Errorf("--%s: %w", clusterResourcesFlag, err)
		}
	}
	if f.exceptions != (exceptionFlags{}) { // serve has its own
		var err error
		if options.Exceptions, err = f.exceptions.limits(); err != nil {
			return service.Options{}, err
		}
	}
	endpoints, err := egress.ParseEndpoints(f.endpoints)
	if err != nil {
		return service.Options{}, fmt.Errorf("--cloud-endpoint: %w", err)
	}
	options.External.Endpoints = endpoints
	if n := options.Engine.InFlightPerAccount; n != 0 && n < verify.MinInFlight {
		return service.Options{}, fmt.Errorf("--in-flight-per-namespace is %d, the least is %d: one request verifies as many in parallel", n, verify.MinInFlight)
	}
	if options.External.Proxy, err = egress.ParseEnvironment(os.Getenv); err != nil {
		return service.Options{}, err
	}
	options.Redis, err = f.redis.options()
	return options, err
}

// open returns the service of a server, which looks up unknown namespaces with finder.
func (f *serviceFlags) open(finder service.Finder) (*service.Service, error) {
	options, err := f.complete()
	if err != nil {
		return nil, err
	}
	return service.New(options, finder)
}

// load returns a service with the resources in --config-dir in force, for a command
// that runs once and asks about a namespace. It prints problems to standard error. Where
// the directory is optional and not given, there are no resources.
func (f *serviceFlags) load(cmd *cobra.Command, namespace verify.Namespace) (*service.Service, error) {
	options, err := f.complete()
	if err != nil {
		return nil, err
	}
	s, loaded, err := service.Load(cmd.Context(), f.configDir, options)
	if err != nil {
		return nil, err
	}
	if s.Set().Snapshot().Tenant(namespace) != "" { // a prefix covers namespaces that no file declares
		loaded.Namespaces = append(loaded.Namespaces, string(namespace))
	}
	if err := f.report(cmd.ErrOrStderr(), namespace, loaded); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// report prints what is wrong with the resources that were loaded. With --strict it
// returns an error if anything is.
func (f *serviceFlags) report(stderr io.Writer, namespace verify.Namespace, loaded service.Loaded) error {
	said := "warning"
	if f.strict {
		said = "error"
	}
	for _, p := range loaded.Problems {
		sayLines(stderr, fmt.Sprintf("%s: %s: %s: %s", said, plain(p.Source.String()), p.Reason, p.Message))
	}
	if loaded.Ignored > 0 {
		say(stderr, "note: objects of kinds that Landwaiter does not use were ignored: %d", loaded.Ignored)
	}
	wrong := len(loaded.Problems)
	if f.configDir != "" && namespace != verify.Cluster && !slices.Contains(loaded.Namespaces, string(namespace)) {
		wrong++
		say(stderr, "%s: %s", said, f.unknown(string(namespace), loaded))
	}
	if f.strict && wrong > 0 {
		return fmt.Errorf("--strict: nothing was asked, because %s has the errors above", f.configDir)
	}
	return nil
}

// maxNames is how many names a message lists.
const maxNames = 10

// unknown says that nothing in the files is in a namespace, and what is.
func (f *serviceFlags) unknown(namespace string, loaded service.Loaded) string {
	text := fmt.Sprintf("no file in %s declares namespace %s or has an object in it, so only cluster resources apply", f.configDir, namespace)
	names := loaded.Namespaces
	if near, ok := lint.Nearest(namespace, names); ok {
		return fmt.Sprintf("%s; did you mean %s?", text, near)
	}
	switch more := len(names) - maxNames; {
	case len(names) == 0:
		return text + "; the files have no namespaces"
	case more > 0:
		return fmt.Sprintf("%s; the files have %s and %d more", text, strings.Join(names[:maxNames], ", "), more)
	}
	return fmt.Sprintf("%s; the files have %s", text, strings.Join(names, ", "))
}
